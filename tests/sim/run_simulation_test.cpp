// Invariants of a run under faults, over a thousand seeds. A failing seed is printed; replay it
// with KERNELMILL_SIM_SEED=N build/tests/sim_tests --gtest_filter='Simulation.*'.
// KERNELMILL_SIM_SEEDS=10000 is a night's.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "actors/run/run_records.hpp"
#include "tests/sim/world.hpp"

namespace kernelmill::sim {
namespace run_simulation_test {

constexpr uint64_t seeds_without_a_wish = 1000;

std::pair<uint64_t, uint64_t> seed_range() {
  if (auto* one = std::getenv("KERNELMILL_SIM_SEED")) {
    auto seed = std::strtoull(one, nullptr, 10);
    return {seed, seed + 1};
  }
  auto* wish = std::getenv("KERNELMILL_SIM_SEEDS");
  return {0, wish != nullptr ? std::strtoull(wish, nullptr, 10) : seeds_without_a_wish};
}

faults some_faults(uint64_t seed) {
  std::mt19937_64 random{seed * 7919 + 1};
  auto upto = [&](double most) { return std::uniform_real_distribution<>{0, most}(random); };
  faults how;
  // Every kind is absent in half of the seeds, so that each is also met alone.
  auto sometimes = [&](double most) { return random() % 2 == 0 ? upto(most) : 0.0; };
  how.policy_error = sometimes(0.15);
  how.policy_silent = sometimes(0.05);
  how.worker_silent = sometimes(0.10);
  how.worker_dies = sometimes(0.10);
  how.worker_fault = sometimes(0.15);
  how.sink_full = sometimes(0.03);
  how.node_dies = sometimes(0.002);
  how.slowest_answer_ms = 1 + static_cast<int>(random() % 20000);
  return how;
}

using lineage = std::map<std::string, Message<wire::Record>>;

/// Runs and resumes until every episode has ended. The last attempts are free of faults: after
/// the faults stop, everything that was asked for must come to its end.
struct history {
  std::vector<outcome> attempts;
  lineage records;
};

history live_through(uint64_t seed, const plan& what, faults how) {
  history result;
  auto sink = std::make_shared<unreliable_sink>(seed ^ 99);
  for (int attempt = 0; attempt < 12; ++attempt) {
    if (attempt == 9) how = faults{};
    result.attempts.push_back(
        run_node(seed + static_cast<uint64_t>(attempt) * 1'000'003, what, how, sink, attempt > 0));
    auto& last = result.attempts.back();
    if (last.summary && std::string{last.summary->open()->getOutcome().cStr()} == "finished") break;
  }
  result.records = sink->records();
  return result;
}

/// What a turn says that does not depend on time or luck.
std::string essence(wire::TurnRecord::Reader turn) {
  return std::string{turn.getTurnId().cStr()} + " " + turn.getCandidateSha256().cStr() + " " +
         turn.getVerdict().getCategory().cStr() + " " +
         std::to_string(static_cast<int>(turn.getVerdict().getOutcome())) + " " +
         std::to_string(turn.getVerdict().getReward());
}

void check_episodes(const lineage& records, const plan& what) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> turns;
  uint32_t episodes = 0, groups = 0, openings = 0, finished = 0;
  for (auto& [key, record] : records) {
    auto view = record.open();
    switch (view->which()) {
      case wire::Record::TURN: {
        auto turn = view->getTurn();
        auto& next = turns[{turn.getEpisode().getGroup(), turn.getEpisode().getMember()}];
        EXPECT_EQ(turn.getTurn(), next) << "a turn is missing or doubled: " << key;
        ++next;
        bool ours =
            turn.getFacts().getEvaluation().getFault().getClass() ==
                wire::FaultClass::INFRASTRUCTURE ||
            turn.getFacts().getBuild().getFault().getClass() == wire::FaultClass::INFRASTRUCTURE;
        if (ours) {
          EXPECT_EQ(turn.getVerdict().getOutcome(), wire::Outcome::INFRASTRUCTURE)
              << "our own fault became a reward: " << key;
        }
        break;
      }
      case wire::Record::EPISODE: {
        auto episode = view->getEpisode();
        auto ref = episode.getEpisode();
        EXPECT_EQ(episode.getTurns(), (turns[{ref.getGroup(), ref.getMember()}])) << key;
        ++episodes;
        break;
      }
      case wire::Record::GROUP: ++groups; break;
      case wire::Record::RUN: {
        std::string state = view->getRun().getState();
        ++(state == "running" ? openings : finished);
        if (state != "running" && state != "finished") {
          --finished;
          EXPECT_EQ(view->getRun().getFault().getClass() == wire::FaultClass::NONE,
                    state == "cancelled")
              << key << " says no cause";
        }
        break;
      }
    }
  }
  EXPECT_EQ(episodes, what.groups * what.group_size);
  EXPECT_EQ(groups, what.groups);
  EXPECT_GE(openings, 1u);
  EXPECT_GE(finished, 1u); // and one more when a node dies before it has said so
}

void check_against_calm(const lineage& records, const lineage& calm) {
  for (auto& [key, record] : records) {
    auto view = record.open();
    if (!view->isTurn()) continue;
    if (view->getTurn().getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE) continue;
    auto same = calm.find(key);
    ASSERT_NE(same, calm.end()) << "a turn that no calm run has: " << key;
    EXPECT_EQ(essence(view->getTurn()), essence(same->second.open()->getTurn()));
  }
}

TEST(Simulation, EveryEpisodeEndsAndNoTurnIsLostDoubledOrMispaid) {
  plan what;
  auto calm = live_through(0, what, faults{}).records;
  auto [first, end] = seed_range();
  uint64_t steps = 0, killed = 0, resumed = 0;
  double virtual_seconds = 0;
  for (auto seed = first; seed < end; ++seed) {
    SCOPED_TRACE("KERNELMILL_SIM_SEED=" + std::to_string(seed));
    auto lived = live_through(seed, what, some_faults(seed));
    for (auto& attempt : lived.attempts) {
      steps += attempt.steps;
      virtual_seconds += attempt.virtual_seconds;
      killed += attempt.killed ? 1 : 0;
      EXPECT_TRUE(attempt.ended || attempt.killed) << "the run hangs";
    }
    resumed += lived.attempts.size() - 1;
    check_episodes(lived.records, what);
    check_against_calm(lived.records, calm);
    if (HasFailure()) FAIL() << "replay with KERNELMILL_SIM_SEED=" << seed;
  }
  std::printf("%llu seeds, %llu steps, %llu nodes killed, %llu resumes, %.0f virtual hours\n",
              static_cast<unsigned long long>(end - first), static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(killed), static_cast<unsigned long long>(resumed),
              virtual_seconds / 3600);
}

// A group's advantages are of those it waited for; the others are closed, whatever they had done.
void check_quorum(const lineage& records, const plan& what) {
  std::map<uint32_t, std::set<uint32_t>> dropped;
  for (auto& [key, record] : records) {
    auto view = record.open();
    if (!view->isEpisode() || view->getEpisode().getStopReason() != "quorum") continue;
    EXPECT_EQ(view->getEpisode().getOutcome(), wire::Outcome::INFRASTRUCTURE) << key;
    auto ref = view->getEpisode().getEpisode();
    dropped[ref.getGroup()].insert(ref.getMember());
  }
  for (auto& [key, record] : records) {
    auto view = record.open();
    if (!view->isGroup()) continue;
    auto group = view->getGroup();
    std::set<uint32_t> left_out{group.getLeftOut().begin(), group.getLeftOut().end()};
    const auto& late = dropped[group.getGroup()];
    EXPECT_TRUE(std::includes(left_out.begin(), left_out.end(), late.begin(), late.end())) << key;
    if (!late.empty()) {
      EXPECT_GE(what.group_size - left_out.size(), what.quorum) << key;
    }
    for (auto member : left_out) EXPECT_TRUE(std::isnan(group.getAdvantages()[member])) << key;
  }
}

TEST(Simulation, AQuorumIsEnoughAndTheRestIsClosed) {
  plan what;
  what.group_size = 5;
  what.quorum = 3;
  what.max_live = 7;
  auto [first, last] = seed_range();
  uint64_t dropped = 0;
  for (auto seed = first; seed < std::min(last, first + 200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto lived = live_through(seed, what, some_faults(seed));
    check_episodes(lived.records, what);
    check_quorum(lived.records, what);
    auto totals = lived.attempts.back().summary->open()->getTotals();
    EXPECT_EQ(totals.getAccepted() + totals.getRejected() + totals.getInfrastructure() +
                  totals.getDropped(),
              what.groups * what.group_size);
    dropped += totals.getDropped();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(dropped, 0u);
}

TEST(Simulation, TheSameSeedTakesTheSameStepsAtTheSameTimes) {
  plan what;
  for (uint64_t seed : {3u, 17u, 255u}) {
    auto one = live_through(seed, what, some_faults(seed));
    auto two = live_through(seed, what, some_faults(seed));
    ASSERT_EQ(one.attempts.size(), two.attempts.size());
    for (size_t i = 0; i < one.attempts.size(); ++i) {
      EXPECT_EQ(one.attempts[i].steps, two.attempts[i].steps);
      EXPECT_EQ(one.attempts[i].trace_hash, two.attempts[i].trace_hash);
    }
  }
}

TEST(Simulation, AnotherSeedTakesOtherSteps) {
  plan what;
  auto one = live_through(1, what, some_faults(1));
  auto two = live_through(2, what, some_faults(2));
  EXPECT_NE(one.attempts[0].trace_hash, two.attempts[0].trace_hash);
}

TEST(Simulation, ADiskThatStaysFullEndsTheRunAndLosesNothing) {
  plan what;
  faults how;
  auto sink = std::make_shared<unreliable_sink>(5);
  how.sink_full = 1;
  auto full = run_node(5, what, how, sink, false);
  ASSERT_TRUE(full.summary);
  EXPECT_STREQ(full.summary->open()->getOutcome().cStr(), "failed");
  EXPECT_STREQ(full.summary->open()->getFault().getCategory().cStr(), "disk_full");
  EXPECT_TRUE(sink->records().empty());
  auto after = run_node(6, what, faults{}, sink, true);
  ASSERT_TRUE(after.summary);
  EXPECT_STREQ(after.summary->open()->getOutcome().cStr(), "finished");
  check_episodes(sink->records(), what);
}

TEST(Simulation, APolicyThatNeverAnswersEndsTheRunAsFailedAndResumable) {
  plan what;
  what.groups = 6;
  faults how;
  how.policy_error = 1;
  auto sink = std::make_shared<unreliable_sink>(5);
  auto down = run_node(5, what, how, sink, false);
  ASSERT_TRUE(down.summary);
  EXPECT_STREQ(down.summary->open()->getOutcome().cStr(), "failed");
  EXPECT_STREQ(down.summary->open()->getFault().getCategory().cStr(), "policy_down");
  // Those that the run's end took with it share the fate of those that asked in vain.
  auto lost = down.summary->open()->getTotals().getInfrastructure();
  EXPECT_GE(lost, 8u);
  std::vector<std::string> states;
  for (auto& [key, record] : sink->records()) {
    auto view = record.open();
    ASSERT_TRUE(view->isRun()) << "a turn without a completion was recorded: " << key;
    states.emplace_back(view->getRun().getState());
    if (states.back() == "failed") {
      EXPECT_STREQ(view->getRun().getFault().getCategory().cStr(), "policy_down");
      EXPECT_EQ(view->getRun().getReadiness(), "{\"lost_open\":" + std::to_string(lost) + "}");
    }
  }
  EXPECT_EQ(states, (std::vector<std::string>{"running", "failed"}));
}

TEST(LostEpisodes, AreThoseOfAFaultAndNotOfAUser) {
  error away{fault_class::infrastructure, "policy_down", "the server is away", {}};
  error refused{fault_class::configuration, "policy_auth", "the key is wrong", {}};
  error told{fault_class::none, "cancelled", "the run was cancelled", {}};
  EXPECT_TRUE(is_lost(away, std::nullopt));
  EXPECT_TRUE(is_lost(told, away)) << "the fault ended its run";
  EXPECT_FALSE(is_lost(told, std::nullopt)) << "the user did";
  EXPECT_TRUE(is_lost(refused, std::nullopt)) << "no server takes the key";
  EXPECT_TRUE(is_lost(told, refused));
}

TEST(Simulation, AMemberThatAServerLosesIsDroppedAndItsGroupIsComplete) {
  plan what;
  what.groups = 3;
  what.max_turns = 3;
  faults how;
  how.lost_member = 1;
  auto sink = std::make_shared<unreliable_sink>(5);
  auto ended = run_node(5, what, how, sink, false);
  ASSERT_TRUE(ended.summary);
  EXPECT_STREQ(ended.summary->open()->getOutcome().cStr(), "finished");
  EXPECT_EQ(ended.summary->open()->getTotals().getInfrastructure(), 3u);
  EXPECT_EQ(ended.summary->open()->getTotals().getEpisodes(), 9u);
  check_episodes(sink->records(), what);
  unsigned turns = 0;
  for (auto& [key, record] : sink->records()) {
    auto view = record.open();
    turns += view->isTurn();
    if (view->isGroup()) {
      auto left_out = view->getGroup().getLeftOut();
      ASSERT_EQ(left_out.size(), 1u) << key;
      EXPECT_EQ(left_out[0], 1u);
    }
    if (!view->isEpisode() || view->getEpisode().getEpisode().getMember() != 1) continue;
    EXPECT_STREQ(view->getEpisode().getStopReason().cStr(), "infrastructure");
    EXPECT_EQ(view->getEpisode().getOutcome(), wire::Outcome::INFRASTRUCTURE);
    EXPECT_EQ(view->getEpisode().getTurns(), 1u) << "the turn that it had stays";
  }
  EXPECT_EQ(ended.summary->open()->getTotals().getTurns(), turns) << "each is counted once";
}

/// The categories of the faults that turns of a run without faults ended with; one worker of each
/// kind for many episodes whose jobs take up to 20 s.
std::multiset<std::string> lost_in_line(uint32_t workers) {
  plan what;
  what.groups = 4;
  what.group_size = 6;
  what.max_turns = 1;
  what.max_live = 24;
  what.workers = workers;
  what.lease_slack_ms = 1000;
  faults how;
  how.slowest_answer_ms = 20'000;
  auto sink = std::make_shared<unreliable_sink>(3);
  EXPECT_TRUE(run_node(3, what, how, sink, false).ended);
  std::multiset<std::string> result;
  for (const auto& [key, record] : sink->records()) {
    auto view = record.open();
    if (!view->isTurn()) continue;
    auto facts = view->getTurn().getFacts();
    for (auto fault :
         {facts.getFault(), facts.getBuild().getFault(), facts.getEvaluation().getFault()})
      if (fault.getClass() == wire::FaultClass::INFRASTRUCTURE)
        result.insert(fault.getCategory().cStr());
  }
  return result;
}

TEST(Waiting, InLineBehindOthersIsNoLateAnswer) {
  EXPECT_EQ(lost_in_line(1), std::multiset<std::string>{});
}

TEST(Waiting, InALineThatIsNotWorkedOffEnds) {
  auto lost = lost_in_line(0);
  EXPECT_GT(lost.count("compiler_lost"), 0u);
  EXPECT_EQ(lost.count("compiler_lost"), lost.size());
}

// No profiler is here: a turn that asked for one would wait for its deadline and say nothing.
TEST(Profile, OfATurnOnAGpuIsNotAskedForAndTheTurnSaysSo) {
  plan what;
  what.profiled_backend = "cuda";
  auto sink = std::make_shared<unreliable_sink>(1);
  ASSERT_TRUE(run_node(1, what, faults{}, sink, false).ended);
  unsigned correct = 0;
  for (const auto& [key, record] : sink->records()) {
    auto view = record.open();
    if (!view->isTurn() || !view->getTurn().getFacts().getEvaluation().getCorrect()) continue;
    ++correct;
    auto missing = view->getTurn().getFacts().getProfile().getMissing();
    ASSERT_EQ(missing.size(), 1u) << key;
    EXPECT_NE(std::string{missing[0].cStr()}.find("GPU"), std::string::npos);
  }
  EXPECT_GT(correct, 0u);
}

} // namespace run_simulation_test
} // namespace kernelmill::sim
