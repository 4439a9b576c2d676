// What a head and those who ask it say when something is wrong, and one run from submit to its end.

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

using testing::HasSubstr;

constexpr const char* nobody = "127.0.0.1:1"; // tcpmux, which nobody serves

TEST(head_command, that_nobody_answers_is_69_and_says_where) {
  for (std::vector<std::string> words : {std::vector<std::string>{"status"},
                                         {"drain", "n1"},
                                         {"cancel", "first"},
                                         {"pause", "first"},
                                         {"resume", "first"}}) {
    words.insert(words.end(), {"--head", nobody, "--insecure-loopback"});
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, 69) << words[0] << x.err;
    EXPECT_THAT(x.err, HasSubstr("failed to reach the head at 127.0.0.1:1")) << words[0];
  }
}

TEST(head_command, without_tls_stays_on_the_loopback) {
  auto x = kernelmill({"head", "--listen", "0.0.0.0:0", "--insecure-loopback"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, HasSubstr("cluster init"));
}

TEST(head_command, without_credentials_does_not_listen) {
  auto x = kernelmill({"head", "--listen", "127.0.0.1:0", "--credentials", scratch() + "/none"});
  EXPECT_EQ(x.code, 3) << x.err;
  EXPECT_THAT(x.err, HasSubstr("kernelmill cluster init"));
}

TEST(head_command, an_address_that_is_none_is_2) {
  EXPECT_EQ(kernelmill({"status", "--head", "::1:7"}).code, 2);
  EXPECT_EQ(kernelmill({"head", "--listen", "127.0.0.1:none"}).code, 2);
}

TEST(head_command, a_run_goes_from_submit_to_its_end_and_the_node_drains) {
  auto root = scratch() + "/head_runs";
  running_program head({"head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root", root});
  auto address = head.first_line();
  ASSERT_THAT(address, HasSubstr("127.0.0.1:"));
  while (!address.empty() && address.back() == '\n') address.pop_back();
  std::vector<std::string> at{"--head", address, "--insecure-loopback"};
  auto ask = [&](std::vector<std::string> words) {
    words.insert(words.end(), at.begin(), at.end());
    return kernelmill(words);
  };
  EXPECT_EQ(ask({"drain", "nobody"}).code, 3);
  EXPECT_EQ(ask({"cancel", "nothing"}).code, 3);
  running_program node({"node", "--head", address, "--insecure-loopback", "--name", "worker",
                        "--compilers", "1", "evaluation.python=/bin/false"});
  node.wait_for_error("joined the head");
  auto run = ask({"submit", "quickstart", "run.name=told", "tasks.ids=[\"native/row_sum\"]",
                  "tasks.group_size=2", "tasks.max_turns=1", "evaluation.timing.enabled=false",
                  "profile.enabled=false", "--wait", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.document()["state"], "finished");
  EXPECT_EQ(run.document()["ended"], 2);
  EXPECT_TRUE(std::filesystem::exists(root + "/told/traces.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(root + "/told/head.json")) << "it is over";
  auto status = ask({"status", "--json"}).document();
  ASSERT_EQ(status["nodes"].size(), 1u);
  EXPECT_EQ(status["nodes"][0]["node"], "worker");
  EXPECT_EQ(ask({"submit", "quickstart", "run.name=told"}).code, 4) << "the name is taken";
  EXPECT_EQ(ask({"drain", "worker"}).code, 0);
  EXPECT_EQ(head.stop(SIGTERM).code, 0);
}

} // namespace
} // namespace kernelmill::test
