// What befalls a run from outside: signals, and a store that is cut while it is open.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {
namespace run_faults_test {

using testing::HasSubstr;

/// What the policy of a run says; with a fault it is silent.
std::string write_script(const std::string& name, const std::string& more = {}) {
  return write_file(name + ".json",
                    R"({"model": "m", "replies": [{"text": "no kernel"}])" + more + "}");
}

std::vector<std::string> run_of(const std::string& name, int turns, const std::string& more = {}) {
  auto script = write_script(name, more);
  return {"run",
          source_file("configs/quickstart.json"),
          "tasks.ids=[\"native/row_sum\"]",
          "tasks.group_size=2",
          "tasks.max_turns=" + std::to_string(turns),
          "profile.enabled=false",
          "policy.script=" + script,
          "run.dir=" + name};
}

/// A shell that ends its terminal's programs has not said nohup.
class heard_hangup {
public:
  heard_hangup() : before_(std::signal(SIGHUP, SIG_DFL)) {
    // nop
  }
  ~heard_hangup() { std::signal(SIGHUP, before_); }

private:
  void (*before_)(int);
};

TEST(run_faults, the_end_of_a_terminal_asks_as_sigterm_does) {
  heard_hangup hears;
  // No answers: the run is in its first turns when the signal comes, however late that is.
  running_program started{run_of("hung_up", 2, R"(, "faults": [{"kind": "stall"}])")};
  started.wait_for_error("run hung_up");
  nlohmann::json episodes;
  while (episodes.empty() && started.running()) {
    auto asked = kernelmill({"ps", "hung_up", "--json"});
    if (asked.code == 0) episodes = asked.document()["episodes"];
  }
  auto x = started.stop(SIGHUP);
  EXPECT_EQ(x.code, 128 + SIGHUP) << x.err;
  EXPECT_THAT(x.out, HasSubstr("cancelled: "));
  EXPECT_THAT(x.err, HasSubstr("kernelmill resume hung_up"));
  EXPECT_THAT(kernelmill({"show", "hung_up"}).out, HasSubstr("\ncancelled\n"));
  write_script("hung_up"); // it speaks again
  auto resumed = kernelmill({"resume", "hung_up", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.document()["totals"]["episodes"], 2);
}

/// Rewards of each turn of a short run, by episode and turn, without what clocks say.
std::map<std::string, double> rewards_of(const std::string& name,
                                         const std::vector<std::string>& profile) {
  std::vector<std::string> run{"run",
                               source_file("configs/quickstart.json"),
                               "tasks.ids=[\"native/row_sum\"]",
                               "tasks.group_size=2",
                               "tasks.max_turns=3",
                               "reward.preset=staged",
                               "evaluation.timing.enabled=false",
                               "run.dir=" + name};
  run.insert(run.end(), profile.begin(), profile.end());
  auto x = kernelmill(run);
  EXPECT_EQ(x.code, 0) << x.err;
  std::map<std::string, double> result;
  std::ifstream traces{scratch() + "/" + name + "/traces.jsonl"};
  for (std::string line; std::getline(traces, line);) {
    auto turn = nlohmann::json::parse(line);
    if (turn["kind"] != "turn") continue;
    result[turn["episode"].get<std::string>() + "." + std::to_string(turn["turn"].get<int>())] =
        turn["reward"].get<double>();
  }
  return result;
}

TEST(run_faults, rewards_are_the_same_whatever_is_profiled_and_told) {
  auto without = rewards_of("unprofiled", {"profile.enabled=false"});
  EXPECT_EQ(without.size(), 6u);
  for (std::string told : {"none", "card", "numbers"})
    EXPECT_EQ(rewards_of("told_" + told, {"profile.feedback=" + told}), without) << told;
}

// On a CPU the sanitizers are g++'s. The kernel's sums are right, and it overflows an int.
TEST(run_faults, sanitizers_look_at_kernels_on_a_cpu) {
  auto run = run_of("sanitized", 1);
  nlohmann::json script{{"model", "m"}};
  script["replies"] = {{{"text", "<think>\nsums\n</think>\n<KERNEL>\n```cpp\n"
                                 "extern \"C\" void solve(const float* x, float* y, int rows, "
                                 "int cols) {\n"
                                 "  int seed = 2147483600;\n"
                                 "  for (int r = 0; r < rows; ++r) {\n"
                                 "    seed = seed + 100;\n"
                                 "    double s = 0;\n"
                                 "    for (int j = 0; j < cols; ++j) s += x[r * cols + j];\n"
                                 "    y[r] = seed == 1 ? 0 : float(s);\n"
                                 "  }\n}\n```\n</KERNEL>\n"}}};
  write_file("sanitized.json", script.dump());
  run.insert(run.end(), {"evaluation.backend=cpu", "evaluation.sanitize=on_accept",
                         "reward.memory_safety=reject"});
  auto x = kernelmill(run);
  ASSERT_EQ(x.code, 0) << x.err;
  auto shown = kernelmill({"show", "sanitized/g0.e0.t0", "--json"});
  EXPECT_THAT(shown.out, testing::AllOf(HasSubstr("memory_undefined"), HasSubstr("kernel.cpp:")));
  EXPECT_THAT(shown.out, HasSubstr("signed integer overflow"));
}

TEST(run_faults, a_run_whose_folder_was_removed_says_so) {
  running_program started{run_of("removed", 64, R"(, "latency_ms": 500)")};
  nlohmann::json shown;
  while (started.running() && shown["tasks"].empty())
    if (auto asked = kernelmill({"show", "removed", "--json"}); asked.code == 0)
      shown = asked.document();
  // The run may put files there meanwhile.
  std::error_code busy;
  for (auto folder = scratch() + "/removed"; std::filesystem::exists(folder);)
    std::filesystem::remove_all(folder, busy);
  auto x = started.stop(0);
  EXPECT_EQ(x.code, 75) << x.err;
  EXPECT_THAT(x.err, HasSubstr("was removed"));
}

TEST(run_faults, a_store_that_is_cut_while_it_is_open_ends_the_run_with_a_word) {
  // So many turns that it goes on when the store is cut, however late that is.
  running_program started{run_of("cut", 64, R"(, "latency_ms": 1500)")};
  auto file = scratch() + "/cut/lineage/data.mdb";
  nlohmann::json shown;
  while (started.running() && shown["tasks"].empty())
    if (auto asked = kernelmill({"show", "cut", "--json"}); asked.code == 0)
      shown = asked.document();
  std::filesystem::resize_file(file, 0);
  auto x = started.stop(0);
  EXPECT_EQ(x.code, 1) << x.err;
  EXPECT_THAT(x.err, HasSubstr("failed to read the store " + scratch() + "/cut/lineage"));
  EXPECT_THAT(x.err, HasSubstr("was cut off while it was open"));
  EXPECT_THAT(x.err, HasSubstr("kernelmill fsck"));
}

std::set<std::string> layers_in(const nlohmann::json& list) {
  return list.get<std::set<std::string>>();
}

TEST(verdict, names_the_layers_of_the_sandbox_that_stood) {
  std::set<std::string> stand;
  auto says = kernelmill({"doctor", "--json"}).document();
  for (const auto& x : says["findings"])
    if (std::string name = x["name"]; name.starts_with("sandbox: ") && x["state"] == "ok")
      stand.insert(name.substr(9));
  ASSERT_TRUE(stand.contains("seccomp"));
  auto kernel = source_file("configs/policies/quickstart/row_sum/plain.cpp");
  auto x = kernelmill({"eval", "--task", "native/row_sum", "--json", kernel});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(layers_in(x.document()["layers"]), stand);
}

TEST(verdict, in_the_traces_of_a_run_names_them_too) {
  auto words = run_of("layered", 1);
  words.insert(words.end(),
               {"evaluation.timing.enabled=false",
                "policy.script=" + source_file("configs/policies/quickstart/script.json")});
  auto x = kernelmill(words);
  ASSERT_EQ(x.code, 0) << x.err;
  std::ifstream traces{scratch() + "/layered/traces.jsonl"};
  size_t evaluated = 0;
  for (std::string line; std::getline(traces, line);) {
    auto turn = nlohmann::json::parse(line);
    if (turn["kind"] != "turn" || turn["eval_result"]["cases_total"] == 0) continue;
    ++evaluated;
    EXPECT_TRUE(layers_in(turn["eval_result"]["sandbox_layers"]).contains("seccomp")) << line;
  }
  EXPECT_GT(evaluated, 0u);
}

} // namespace run_faults_test
} // namespace kernelmill::test
