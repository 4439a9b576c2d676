#include <filesystem>

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Two episodes of two turns of one task, timed briefly.
std::vector<std::string> small_run(const std::string& directory,
                                   std::vector<std::string> more = {}) {
  std::vector<std::string> result{"run",
                                  source_file("configs/quickstart.json"),
                                  "tasks.ids=[\"native/row_sum\"]",
                                  "tasks.group_size=2",
                                  "tasks.max_turns=2",
                                  "evaluation.timing.budget_ms=50",
                                  "profile.enabled=false",
                                  "run.dir=" + directory};
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

TEST(run_command, ends_with_a_summary_whose_totals_add_up) {
  auto x = kernelmill(small_run("one", {"--json"}));
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["schema_version"], 1);
  EXPECT_EQ(d["outcome"], "finished");
  auto t = d["totals"];
  EXPECT_EQ(t["groups"], 1);
  EXPECT_EQ(t["episodes"], 2);
  EXPECT_EQ(t["accepted"].get<int>() + t["rejected"].get<int>() + t["infrastructure"].get<int>(),
            2);
  EXPECT_GT(d["stages"].size(), 3u);
  // Where the time went that its evaluations held a slot.
  for (const auto* part : {"slot.task", "slot.process", "slot.load", "slot.correctness"})
    EXPECT_TRUE(d["stages"].contains(part)) << part << " in " << d["stages"];
  EXPECT_GT(d["stages"]["slot.correctness"], 0);
  EXPECT_EQ(d["directory"], scratch() + "/one");

  auto shown = kernelmill({"show", "one", "--json"}).document();
  EXPECT_EQ(shown["episodes"].size(), 2u);
  EXPECT_EQ(kernelmill({"show", "one/g0.e0.t0", "--json"}).code, 0);

  // What a run saves reproduces it.
  EXPECT_EQ(kernelmill({"config", "validate", "one/config.json"}).code, 0);

  auto again = kernelmill(small_run("one", {"--json"}));
  EXPECT_EQ(again.code, 4) << again.err;

  auto resumed = kernelmill({"resume", "one", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.document()["totals"], t);
}

// No interval is that narrow: whatever is not slower for certain is not timed.
TEST(run_command, tells_of_turns_that_are_right_and_not_timed) {
  auto x = kernelmill(small_run("vague", {"tasks.max_turns=4", "evaluation.timing.widest=1e-9"}));
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("right and not timed"));
  auto shown = kernelmill({"show", "vague", "--json"}).document();
  auto task = shown["tasks"][0];
  EXPECT_GT(task["not_timed"].get<int>(), 0);
  std::string where;
  for (const auto& e : shown["episodes"])
    for (size_t turn = 0; turn < e["categories"].size(); ++turn)
      if (e["categories"][turn] == "not_timed")
        where = "vague/" + e["id"].get<std::string>() + ".t" + std::to_string(turn);
  EXPECT_THAT(kernelmill({"show", "vague"}).out, HasSubstr("right and not timed"));
  auto turn = kernelmill({"show", where});
  EXPECT_THAT(turn.out, AllOf(HasSubstr("\nnot timed, for which the "),
                              HasSubstr("accepted, not_timed"), HasSubstr("says nothing")));
  auto report = kernelmill({"report", "vague", "--by", "turn", "--json"});
  EXPECT_EQ(report.document()["all"]["not_timed"], task["not_timed"]) << report.out;
  EXPECT_EQ(kernelmill({"resume", "vague", "--json"}).document()["totals"]["not_timed"],
            task["not_timed"]);
}

TEST(run_command, tells_people_where_the_time_of_its_slots_went) {
  auto x = kernelmill(small_run("slots"));
  ASSERT_EQ(x.code, 0) << x.err;
  auto at = x.out.find("time in slots, all together: ");
  ASSERT_NE(at, std::string::npos) << x.out;
  auto line = x.out.substr(at, x.out.find('\n', at) - at);
  EXPECT_THAT(line, AllOf(HasSubstr("correctness "), HasSubstr("load "), Not(HasSubstr("slot."))));
  at = x.out.find("time in stages, all episodes together: ");
  ASSERT_NE(at, std::string::npos) << x.out;
  line = x.out.substr(at, x.out.find('\n', at) - at);
  EXPECT_THAT(line, AllOf(HasSubstr("evaluate "), Not(HasSubstr("slot"))));
}

TEST(run_command, device_code_on_the_cpu_is_refused_before_anything_starts) {
  auto x = kernelmill(
      small_run("contract", {"evaluation.contract=device", "evaluation.backend=cpu", "--json"}));
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_EQ(x.out, "");
  // What is told before it, of the run's name, is for people.
  EXPECT_THAT(x.err, AllOf(HasSubstr("\"category\": \"unsupported_contract\""),
                           HasSubstr("the backend is cpu")));
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/contract"));
}

TEST(run_command, a_contract_that_there_is_not_is_2) {
  auto x = kernelmill(small_run("contract", {"evaluation.contract=triton"}));
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, AllOf(HasSubstr("triton"), HasSubstr("native"), HasSubstr("device")));
}

TEST(run_command, a_signal_keeps_what_is_committed_and_resume_goes_on) {
  // Slow answers: the run is in its first turns when the signal comes.
  auto script = write_file(
      "slow.json", R"({"model": "m", "latency_ms": 2000, "replies": [{"text": "no kernel"}]})");
  running_program started{small_run("two", {"--json", "policy.script=" + script})};
  // The first line on stderr says that signals are heard; then episodes live.
  started.wait_for_error("run two");
  nlohmann::json episodes;
  while (episodes.empty() && started.running()) {
    auto asked = kernelmill({"ps", "two", "--json"});
    if (asked.code == 0) episodes = asked.document()["episodes"];
  }
  EXPECT_EQ(episodes.size(), 2u);
  for (const auto& e : episodes) EXPECT_NE(e["state"], "");
  auto x = started.stop(SIGTERM);
  EXPECT_EQ(x.code, 143) << x.err;
  EXPECT_EQ(x.document()["outcome"], "cancelled");
  EXPECT_THAT(x.err, HasSubstr("kernelmill resume two"));
  auto resumed = kernelmill({"resume", "two", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.document()["totals"]["episodes"], 2);
}

TEST(run_command, resume_refuses_to_change_what_is_measured) {
  ASSERT_EQ(kernelmill(small_run("three")).code, 0);
  auto x = kernelmill({"resume", "three", "tasks.group_size=3"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("tasks.group_size"));
  EXPECT_EQ(kernelmill({"resume", "three", "log.level=warn"}).code, 0);
}

TEST(run_command, a_policy_server_that_is_down_is_69_and_nothing_is_lost) {
  auto x =
      kernelmill(small_run("four", {"policy.kind=openai", "policy.base_url=http://127.0.0.1:9/v1",
                                    "policy.model=m", "policy.timeout_ms=2000", "--json"}));
  EXPECT_EQ(x.code, 69) << x.err;
  EXPECT_THAT(x.err, HasSubstr("127.0.0.1:9"));
}

TEST(run_command, a_task_that_does_not_exist_is_3_and_names_the_closest) {
  auto x = kernelmill(small_run("five", {"tasks.ids=[\"native/rowsum\"]"}));
  EXPECT_EQ(x.code, 3) << x.err;
  EXPECT_THAT(x.err, HasSubstr("native/row_sum"));
}

TEST(run_command, a_missing_key_is_2_and_its_value_is_nowhere) {
  program_options options;
  options.environment = {"SOME_KEY=TOPSECRET\nX"};
  for (const auto* name : {"SOME_KEY", "NO_SUCH_KEY"}) {
    auto x =
        kernelmill(small_run("six", {"policy.kind=openai", "policy.base_url=http://127.0.0.1:9/v1",
                                     "policy.model=m", std::string{"policy.api_key_env="} + name}),
                   options);
    EXPECT_EQ(x.code, 2) << x.err;
    EXPECT_THAT(x.err, Not(HasSubstr("TOPSECRET")));
  }
}

TEST(run_command, a_required_layer_that_is_no_layer_is_2) {
  EXPECT_EQ(kernelmill(small_run("seven", {"evaluation.required_layers=[\"walls\"]"})).code, 2);
}

} // namespace

} // namespace kernelmill::test
