// Episodes of mode `tools` under faults: what a node that dies leaves behind is, after resume, what
// an undisturbed run would have made.

#include <algorithm>
#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/tools/tool_list.hpp"
#include "actors/governance/reward.hpp"
#include "tests/sim/world.hpp"

namespace kernelmill::sim {
namespace tools_test {

using lineage = std::map<std::string, Message<wire::Record>>;

uint64_t seeds() {
  auto* wish = std::getenv("KERNELMILL_SIM_SEEDS");
  return wish != nullptr ? std::strtoull(wish, nullptr, 10) : 60;
}

struct life {
  lineage records;
  int deaths = 0;
};

life live(uint64_t seed, const plan& what, const faults& how) {
  life result;
  auto sink = std::make_shared<unreliable_sink>(seed ^ 99);
  for (int attempt = 0; attempt < 200; ++attempt) {
    auto one =
        run_node(seed + static_cast<uint64_t>(attempt) * 1'000'003, what, how, sink, attempt > 0);
    result.deaths += one.killed ? 1 : 0;
    if (one.summary && std::string{one.summary->open()->getOutcome().cStr()} == "finished") break;
  }
  result.records = sink->records();
  return result;
}

std::string text(wire::Content::Reader x) {
  return x.isInline() ? x.getInline().cStr() : x.getArtifact().getSha256().cStr();
}

/// All of a turn that does not depend on when it was made.
std::string essence(wire::TurnRecord::Reader x) {
  std::string out = x.getTurnId().cStr();
  auto add = [&](auto what) { out.append(" ").append(std::string{what}); };
  for (auto call : x.getCalls()) {
    add(call.getId().cStr()), add(call.getTool().cStr()), add(call.getStatus().cStr());
    add(call.getTransition().cStr()), add(call.getInput().cStr()), add(call.getOutput().cStr());
    add(std::to_string(call.getSteps())), add(std::to_string(call.getGpuSeconds()));
    add(text(call.getObservation()));
  }
  for (auto node : x.getCandidates()) {
    add(node.getId().cStr()), add(node.getParent().cStr()), add(node.getSha256().cStr());
    add(node.getRole().cStr()), add(node.getOrigin().cStr()), add(node.getPatchKind().cStr());
    add(std::to_string(node.getDepth()));
  }
  for (auto mark : x.getMarks()) add(mark.getId().cStr()), add(mark.getStatus().cStr());
  add(x.getActive().cStr()), add(x.getVerdict().getCategory().cStr());
  for (auto part : x.getVerdict().getComponents())
    add(part.getName().cStr()), add(std::to_string(part.getValue() * part.getWeight()));
  add(std::to_string(x.getVerdict().getReward())), add(x.getStopReason().cStr());
  return out;
}

std::map<std::string, std::string> essences(const lineage& records) {
  std::map<std::string, std::string> result;
  for (const auto& [key, record] : records)
    if (auto view = record.open(); view->isTurn()) result[key] = essence(view->getTurn());
  return result;
}

plan hundred_episodes() {
  plan what;
  what.groups = 25;
  what.group_size = 4;
  what.max_live = 16;
  what.tools = true;
  return what;
}

plan few_episodes() {
  plan what;
  what.groups = 2;
  what.group_size = 3;
  what.tools = true;
  return what;
}

TEST(tool_episodes, a_hundred_end_and_keep_their_budgets) {
  auto what = hundred_episodes();
  auto lived = live(7, what, {});
  std::map<std::string, std::pair<uint32_t, double>> used;
  std::set<std::string> ends, statuses, transitions, tools;
  uint32_t episodes = 0;
  auto name = [](wire::EpisodeRef::Reader x) {
    return std::to_string(x.getGroup()) + "." + std::to_string(x.getMember());
  };
  for (const auto& [key, record] : lived.records) {
    auto view = record.open();
    if (!view->isTurn()) continue;
    auto turn = view->getTurn();
    auto& [steps, seconds] = used[name(turn.getEpisode())];
    steps += turn.getIdleSteps();
    std::set<std::string> ids;
    for (auto call : turn.getCalls()) {
      steps += call.getSteps();
      seconds += call.getGpuSeconds();
      statuses.insert(call.getStatus().cStr());
      transitions.insert(call.getTransition().cStr());
      tools.insert(call.getTool().cStr());
      EXPECT_TRUE(ids.insert(call.getId().cStr()).second);
      EXPECT_FALSE(text(call.getObservation()).empty());
    }
  }
  for (const auto& [key, record] : lived.records) {
    auto view = record.open();
    if (!view->isEpisode()) continue;
    ++episodes;
    auto x = view->getEpisode();
    ends.insert(x.getTerminalState().cStr());
    auto [steps, seconds] = used.at(name(x.getEpisode()));
    EXPECT_EQ(x.getSteps(), steps);
    EXPECT_EQ(x.getGpuSeconds(), seconds);
    EXPECT_LE(steps, tool_settings{}.steps);
  }
  EXPECT_EQ(episodes, 100u);
  EXPECT_THAT(ends, testing::IsSupersetOf({"success", "failure", "budget_exhausted"}));
  EXPECT_THAT(statuses, testing::UnorderedElementsAre("ok", "failed", "refused"));
  EXPECT_THAT(transitions,
              testing::IsSupersetOf({"inspect_only", "patch_applied", "benchmarked", "evaluated",
                                     "reverted", "branched", "promoted", "repaired"}));
  tools.insert("profile"); // the world has no profiler
  for (const auto& x : all_tools()) EXPECT_TRUE(tools.contains(std::string{x.name})) << x.name;
}

TEST(tool_episodes, a_node_that_dies_changes_nothing) {
  int deaths = 0;
  for (uint64_t seed = 0; seed < seeds(); ++seed) {
    auto calm = live(seed, few_episodes(), {});
    faults how;
    how.node_dies = 0.003;
    how.worker_dies = 0.02;
    how.sink_full = 0.01;
    auto rough = live(seed, few_episodes(), how);
    deaths += rough.deaths;
    EXPECT_EQ(essences(rough.records), essences(calm.records)) << "seed " << seed;
  }
  EXPECT_GT(deaths, static_cast<int>(seeds() / 2));
}

plan shaped_episodes() {
  auto what = few_episodes();
  what.rewards = *reward_preset("optimize_v1");
  what.rewards.integrity_penalty = 0.5;
  return what;
}

bool tried_a_cheat(wire::TurnRecord::Reader turn) {
  bool result = false;
  for (auto call : turn.getCalls())
    for (auto found : call.getVerdict().getFindings())
      result |= found.getSeverity() == wire::Severity::CRITICAL;
  return result;
}

TEST(tool_episodes, calls_earn_within_their_limits_and_a_cheat_costs_once_a_turn) {
  const std::map<std::string, std::pair<double, double>> limits = {
      {"tool_cost", {-0.2, 0}},
      {"compare_use", {0, 0.02}},
      {"best_known_supersede", {0, 0.03}},
      {"candidate_regression", {-0.08, 0}},
      {"revert_recovery", {0, 0.03}},
      {"promote_closeout", {0, 0.02}},
      {"near_miss_progress", {0, 0.03}}};
  auto what = shaped_episodes();
  what.groups = 25;
  auto lived = live(11, what, {});
  std::map<std::string, std::map<std::string, double>> sums;
  std::set<std::string> seen;
  for (const auto& [key, record] : lived.records) {
    auto view = record.open();
    if (!view->isTurn()) continue;
    auto turn = view->getTurn();
    auto verdict = turn.getVerdict();
    double total = 0, penalty = 0;
    for (auto part : verdict.getComponents()) {
      std::string name = part.getName().cStr();
      auto earned = part.getValue() * part.getWeight();
      total += earned;
      if (name == "integrity") penalty += earned;
      sums[std::to_string(turn.getEpisode().getGroup()) + "." +
           std::to_string(turn.getEpisode().getMember())][name] += earned;
      if (earned != 0) seen.insert(name);
    }
    EXPECT_DOUBLE_EQ(verdict.getReward(), total);
    EXPECT_EQ(penalty, tried_a_cheat(turn) ? -0.5 : 0);
  }
  for (const auto& [episode, parts] : sums)
    for (const auto& [name, limit] : limits)
      if (auto sum = parts.find(name); sum != parts.end()) {
        EXPECT_GE(sum->second, limit.first - 1e-9) << episode << " " << name;
        EXPECT_LE(sum->second, limit.second + 1e-9) << episode << " " << name;
      }
  EXPECT_THAT(seen, testing::IsSupersetOf({"tool_cost", "compare_use", "candidate_regression",
                                           "revert_recovery", "integrity", "correctness"}));
}

TEST(tool_episodes, a_node_that_dies_changes_nothing_that_calls_earn) {
  int deaths = 0;
  for (uint64_t seed = 0; seed < seeds() / 3; ++seed) {
    auto calm = live(seed, shaped_episodes(), {});
    faults how;
    how.node_dies = 0.004;
    auto rough = live(seed, shaped_episodes(), how);
    deaths += rough.deaths;
    EXPECT_EQ(essences(rough.records), essences(calm.records)) << "seed " << seed;
  }
  EXPECT_GT(deaths, static_cast<int>(seeds() / 6));
}

// What a query found counts from the next answer on, also behind a resume.
TEST(tool_episodes, a_copy_of_what_a_query_found_is_unchanged) {
  auto what = hundred_episodes();
  what.groups = 12;
  faults how;
  how.node_dies = 0.002;
  auto lived = live(11, what, how);
  struct knowledge {
    std::set<std::string> copies; // ids of candidates
    uint32_t since = ~0u;         // the turn that asked
  };
  std::map<std::string, knowledge> episodes;
  uint32_t unchanged = 0, unseen = 0;
  for (const auto& [key, record] : lived.records) { // an episode's turns are in order
    auto view = record.open();
    if (!view->isTurn()) continue;
    auto turn = view->getTurn();
    auto ref = turn.getEpisode();
    auto& known = episodes[std::to_string(ref.getGroup()) + "." + std::to_string(ref.getMember())];
    for (auto node : turn.getCandidates())
      if (text(node.getSource()).find("int fast") != std::string::npos)
        known.copies.insert(node.getId().cStr());
    bool asked = false;
    for (auto call : turn.getCalls()) {
      std::string_view tool{call.getTool().cStr()};
      asked |= tool == "knowledge_query" && call.getStatus() == "ok";
      bool right = call.getVerdict().getOutcome() == wire::Outcome::ACCEPTED;
      if (!right || call.getVerdict().getCategory().size() == 0) continue;
      bool copied = known.copies.contains(call.getOutput().cStr());
      bool seen = turn.getTurn() > known.since;
      EXPECT_EQ(call.getVerdict().getCategory() == "unchanged", copied && seen);
      unchanged += copied && seen ? 1 : 0;
      unseen += copied && !seen ? 1 : 0;
    }
    if (asked) known.since = std::min(known.since, turn.getTurn());
    std::vector<std::string> examples;
    for (auto id : turn.getExamples()) examples.emplace_back(id.cStr());
    if (asked)
      EXPECT_THAT(examples, testing::ElementsAre("kernel:other", "card:sums"));
    else
      EXPECT_THAT(examples, testing::IsEmpty());
  }
  EXPECT_GT(lived.deaths, 0);
  EXPECT_GT(unchanged, 0u);
  EXPECT_GT(unseen, 0u);
}

// What a machine breaks is no candidate's doing: such a turn is lost, and so is its episode.
TEST(tool_episodes, a_fault_of_the_machine_pays_nothing) {
  for (uint64_t seed = 0; seed < seeds() / 4; ++seed) {
    faults how;
    how.worker_fault = 0.3;
    auto lived = live(seed, few_episodes(), how);
    for (const auto& [key, record] : lived.records) {
      auto view = record.open();
      if (!view->isTurn()) continue;
      auto turn = view->getTurn();
      bool lost = false;
      for (auto call : turn.getCalls()) lost |= std::string{call.getStatus().cStr()} == "lost";
      EXPECT_EQ(lost, turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE);
    }
  }
}

} // namespace tools_test
} // namespace kernelmill::sim
