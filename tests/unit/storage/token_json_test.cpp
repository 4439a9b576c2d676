#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "messages/message.hpp"
#include "storage/token_json.hpp"

namespace kernelmill {
namespace token_json_test {

Message<wire::Completion> completion_of(const std::vector<float>& logprobs) {
  return build<wire::Completion>([&](wire::Completion::Builder x) {
    x.setPromptTokenIds({1, 2, 3});
    x.setTokenIds({4, 5});
    x.setLogprobs(kj::arrayPtr(logprobs.data(), logprobs.size()));
    x.setRoute("tokens");
    x.initAudit().setState(wire::TokenState::BRANCH);
    x.getAudit().setPosition(2);
    x.getAudit().setKept(7);
    auto span = x.initWeightVersions(1)[0];
    span.setVersion("step-1");
    span.setEnd(2);
  });
}

TEST(token_json, says_what_the_audit_found) {
  auto message = completion_of({});
  EXPECT_EQ(token_audit_json(*message.open()),
            nlohmann::ordered_json::parse(
                R"({"audit":"branch","kept":7,"position":2,"route":"tokens"})"));
  EXPECT_EQ(weight_versions_json(*message.open()),
            nlohmann::ordered_json::parse(R"([{"version":"step-1","start":0,"end":2}])"));
  nlohmann::ordered_json lists;
  add_token_lists(lists, *message.open());
  EXPECT_EQ(lists,
            nlohmann::ordered_json::parse(R"({"prompt_token_ids":[1,2,3],"token_ids":[4,5]})"));
}

TEST(token_json, floats_come_back_bit_by_bit_from_the_text) {
  const std::vector<float> values = {-0.1f, -1.1754944e-38f, -1e-45f,
                                     -0.0f, -12.345678f,     std::nextafterf(-1.0f, 0.0f)};
  auto message = completion_of(values);
  nlohmann::ordered_json lists;
  add_token_lists(lists, *message.open());
  auto again = nlohmann::json::parse(lists.dump());
  for (size_t i = 0; i < values.size(); ++i) {
    auto x = static_cast<float>(again["logprobs"][i].get<double>());
    EXPECT_EQ(std::memcmp(&x, &values[i], sizeof x), 0) << values[i];
  }
}

TEST(token_json, what_was_not_told_is_null) {
  auto message = completion_of({std::numeric_limits<float>::quiet_NaN(), -1.5f});
  nlohmann::ordered_json lists;
  add_token_lists(lists, *message.open());
  EXPECT_EQ(lists["logprobs"], nlohmann::ordered_json::parse("[null,-1.5]"));
}

} // namespace token_json_test
} // namespace kernelmill
