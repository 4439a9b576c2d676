#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/turn_facts.hpp"
#include "actors/episode/unprofiled.hpp"
#include "messages/judged.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace unprofiled_test {

TEST(acceptable, is_what_a_judge_has_no_reason_to_reject) {
  auto acceptable = [](auto spoil) {
    auto result = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
      x.setCorrect(true);
      x.setDeterministic(true);
      x.initFindings(1)[0].setSeverity(wire::Severity::WARNING);
      spoil(x);
    });
    return is_acceptable(*result.open());
  };
  EXPECT_TRUE(acceptable([](auto) {}));
  EXPECT_FALSE(acceptable([](auto x) { x.setCorrect(false); }));
  EXPECT_FALSE(acceptable([](auto x) { x.setDeterministic(false); }));
  EXPECT_FALSE(
      acceptable([](auto x) { x.getFindings()[0].setSeverity(wire::Severity::CRITICAL); }));
  EXPECT_FALSE(acceptable([](auto x) { x.initFault().setClass(wire::FaultClass::CANDIDATE); }));
}

TEST(sanitized, is_each_contract_and_in_time_of_its_own) {
  auto asked = [](contract_kind contract, const char* when) {
    task what;
    what.contract = contract;
    const parsed_completion parsed;
    const std::string sha256(64, 'a');
    const auto built = build<wire::BuildResult>([](wire::BuildResult::Builder) {});
    const auto timing = build<wire::TimingPolicy>([](wire::TimingPolicy::Builder) {});
    auto built_view = built.open();
    auto timing_view = timing.open();
    return evaluation_request({what, parsed, sha256}, *built_view,
                              {*timing_view,
                               {},
                               std::chrono::milliseconds{5000},
                               when,
                               std::chrono::milliseconds{*when == 0 ? 0 : 3000}});
  };
  for (auto contract : {contract_kind::device, contract_kind::native, contract_kind::torch}) {
    auto request = asked(contract, "on_accept");
    auto x = request.open();
    EXPECT_STREQ(x->getSanitize().cStr(), "on_accept");
    EXPECT_EQ(x->getSanitizeMs(), 3000u);
    EXPECT_EQ(x->getDeadlineMs(), 8000u);
  }
  auto without = asked(contract_kind::native, "");
  auto y = without.open();
  EXPECT_STREQ(y->getSanitize().cStr(), "");
  EXPECT_EQ(y->getDeadlineMs(), 5000u);
}

TEST(unprofiled, is_nothing_on_a_cpu) {
  EXPECT_EQ(unprofiled_reason("cpu", false), "");
}

TEST(unprofiled, is_what_runs_on_a_gpu_and_says_so) {
  EXPECT_THAT(unprofiled_reason("cuda", false), HasSubstr("GPU"));
  EXPECT_THAT(unprofiled_reason("hip", false), HasSubstr("GPU"));
}

TEST(unprofiled, is_a_module_in_python) {
  EXPECT_THAT(unprofiled_reason("cpu", true), HasSubstr("Python"));
  EXPECT_THAT(unprofiled_reason("cuda", true), HasSubstr("Python"));
}

} // namespace unprofiled_test
