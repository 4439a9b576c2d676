#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

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

} // namespace

} // namespace kernelmill::test
