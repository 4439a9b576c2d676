#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace simulate_test {

using testing::HasSubstr;

TEST(simulate_command, says_what_limits_the_quickstart) {
  auto x = kernelmill({"simulate", source_file("configs/quickstart.json"), "--slots", "1",
                       "--evaluate-seconds", "10", "--policy-seconds", "1", "--build-seconds", "1",
                       "--compilers", "8"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("what limits it: evaluate"));
  EXPECT_THAT(x.out, HasSubstr("64 episodes of 4 turns"));
  EXPECT_THAT(x.out, HasSubstr("WAIT P90"));
}

TEST(simulate_command, in_json_has_the_stages_and_the_alternatives) {
  std::vector<std::string> words{"simulate",
                                 source_file("configs/quickstart.json"),
                                 "--slots",
                                 "1",
                                 "--evaluate-seconds",
                                 "10",
                                 "--policy-seconds",
                                 "1..2",
                                 "--compilers",
                                 "8",
                                 "--json"};
  auto x = kernelmill(words);
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["turns"], 256);
  EXPECT_EQ(document["stages"].size(), 4u);
  EXPECT_EQ(document["alternatives"].size(), 10u);
  EXPECT_NEAR(document["seconds"].get<double>(), 2570, 20);
  EXPECT_LT(document["alternatives"][3]["seconds"].get<double>(), 400);
  EXPECT_EQ(kernelmill(words).out, x.out);
}

TEST(simulate_command, refuses_what_it_cannot_read) {
  auto config = source_file("configs/quickstart.json");
  auto x = kernelmill({"simulate", config, "--policy-seconds", "slow", "--json"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr("--policy-seconds"));
  EXPECT_EQ(kernelmill({"simulate", config, "--nodes", "0"}).code, 2);
  EXPECT_EQ(kernelmill({"simulate", config, "tasks.groups=1000000"}).code, 2);
  EXPECT_NE(kernelmill({"simulate", config, "--from", "no-such-run"}).code, 0);
}

TEST(simulate_command, takes_times_from_a_run) {
  auto ran =
      kernelmill({"run", source_file("configs/quickstart.json"), "tasks.ids=[\"native/row_sum\"]",
                  "tasks.group_size=2", "tasks.max_turns=2", "evaluation.timing.enabled=false",
                  "profile.enabled=false", "run.dir=simulated", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto x = kernelmill({"simulate", source_file("configs/quickstart.json"), "--from", "simulated",
                       "--slots", "2", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  EXPECT_EQ(document["from"], "simulated");
  auto work = document["workload"];
  EXPECT_THAT(work["policy_seconds"].get<std::string>(), HasSubstr("measured"));
  EXPECT_THAT(work["evaluate_seconds"].get<std::string>(), HasSubstr("measured"));
  EXPECT_GT(work["build_share"].get<double>(), 0);
  EXPECT_LE(document["turns"].get<int>(), 128); // no episode had more than two
  EXPECT_GT(document["seconds"].get<double>(), 0);
}

} // namespace simulate_test

} // namespace kernelmill::test
