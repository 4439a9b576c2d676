#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace policy_command_test {

using testing::HasSubstr;
using testing::StartsWith;

TEST(policy_command, serves_until_it_is_interrupted) {
  auto script = write_file("script.json", R"({"model": "m", "replies": [{"text": "hello"}]})");
  running_program server{{"policy", "scripted", "--script", script, "--port", "0"}};
  EXPECT_THAT(server.first_line(), StartsWith("http://127.0.0.1:"));
  auto x = server.stop(SIGTERM);
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.err, HasSubstr("answered 0 requests"));
}

TEST(policy_command, a_missing_script_is_3_and_a_broken_one_is_2) {
  EXPECT_EQ(kernelmill({"policy", "scripted", "--script", "none.json"}).code, 3);
  auto broken = write_file("broken_script.json", "{\"replies\": [}");
  auto x = kernelmill({"policy", "scripted", "--script", broken});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("broken_script.json"));
}

// The error of such a key has no hint of its own.
TEST(policy_command, what_nothing_more_is_known_of_has_the_next_step_of_its_category) {
  auto wrong = write_file("wrong_script.json", R"({"model": "m", "replies": [{"task": 3}]})");
  auto x = kernelmill({"policy", "scripted", "--script", wrong});
  EXPECT_THAT(x.err, HasSubstr("next: see docs/reference/policy-script.md"));
  auto y = kernelmill({"policy", "scripted", "--script", wrong, "--json"});
  EXPECT_THAT(y.fault()["hint"].get<std::string>(), StartsWith("see docs/"));
}

TEST(policy_command, an_address_that_cannot_be_listened_on_is_named_with_its_cause) {
  auto script = write_file("script.json", R"({"model": "m", "replies": [{"text": "hello"}]})");
  std::vector<std::string> words{"policy", "scripted", "--script", script};
  running_program first{words};
  auto url = first.first_line();
  ASSERT_THAT(url, StartsWith("http://127.0.0.1:"));
  auto port = url.substr(url.rfind(':') + 1);
  port = port.substr(0, port.find('/'));
  words.insert(words.end(), {"--json", "--port", port});
  auto taken = kernelmill(words);
  EXPECT_EQ(taken.code, 4) << taken.err;
  EXPECT_EQ(taken.fault()["category"], "address_in_use") << taken.err;
  words.insert(words.end(), {"--host", "192.0.2.1"}); // for documentation: no machine has it
  auto strange = kernelmill(words);
  EXPECT_EQ(strange.code, 2) << strange.err;
  EXPECT_EQ(strange.fault()["category"], "address_unusable") << strange.err;
  EXPECT_THAT(strange.err, HasSubstr(":" + port + ": Cannot assign"));
}

} // namespace policy_command_test

} // namespace kernelmill::test
