#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "messages/evaluate.capnp.h"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "messages/verdict.capnp.h"

namespace kernelmill {
namespace json_test {

template <class T, class F>
nlohmann::ordered_json json_of(F&& fill) {
  auto message = build<T>(std::forward<F>(fill));
  auto view = message.open();
  return to_json(*view);
}

TEST(json, keys_are_snake_case_in_schema_order_and_enums_are_words) {
  auto x = json_of<wire::Readiness>([](wire::Readiness::Builder out) {
    out.setKind(wire::EpisodeKind::USABLE_NEGATIVE_DEBUG);
    out.initReasons(1).set(0, "why");
  });
  EXPECT_EQ(x.dump(), R"({"kind":"usable_negative_debug","reasons":["why"]})");
  EXPECT_EQ(snake_case("librarySha256"), "library_sha256");
}

TEST(json, numbers_that_json_cannot_hold_print_as_null) {
  auto x = json_of<wire::CaseResult>([](wire::CaseResult::Builder out) {
    out.setMaxError(std::numeric_limits<double>::infinity());
    out.setBound(std::numeric_limits<double>::quiet_NaN());
    out.setBadCount(std::numeric_limits<uint64_t>::max());
  });
  auto text = x.dump();
  EXPECT_NE(text.find(R"("max_error":null,"bound":null)"), std::string::npos);
  EXPECT_NE(text.find(R"("bad_count":18446744073709551615)"), std::string::npos);
}

TEST(json, only_the_active_member_of_a_union_is_there) {
  auto x = json_of<wire::Content>([](wire::Content::Builder out) { out.setInline("text"); });
  EXPECT_EQ(x.dump(), R"({"inline":"text"})");
}

TEST(json, data_prints_as_hex) {
  auto x = json_of<wire::EvaluateResult>([](wire::EvaluateResult::Builder out) {
    const unsigned char seed[] = {0, 0xab};
    out.setSeed(capnp::Data::Reader(seed, 2));
  });
  EXPECT_EQ(x["seed"], "00ab");
}

TEST(json, nothing_set_prints_every_field_with_its_default) {
  auto x = json_of<wire::TimingPolicy>([](wire::TimingPolicy::Builder) {});
  EXPECT_EQ(x["enabled"], true);
  EXPECT_EQ(x["half_width"], 0.03);
}

TEST(json, an_enum_value_of_a_newer_schema_is_named_by_its_number) {
  auto x = json_of<wire::Readiness>(
      [](wire::Readiness::Builder out) { out.setKind(static_cast<wire::EpisodeKind>(99)); });
  EXPECT_EQ(x["kind"], "unknown_99");
}

} // namespace json_test
} // namespace kernelmill
