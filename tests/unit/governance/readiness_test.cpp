#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/governance/judge.hpp"
#include "tests/unit/governance/facts.hpp"

namespace kernelmill::fixtures {
namespace readiness_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using wire::EpisodeKind;
using filler = std::function<void(wire::TurnFacts::Builder)>;

void no_candidate(wire::TurnRecord::Builder out) {
  out.initCandidate().setInline("");
}

// The committed turns of one episode, judged by the real judge.
class episode {
public:
  episode& turn(const filler& fill,
                const std::function<void(wire::TurnRecord::Builder)>& spoil = {}) {
    auto facts_message = facts(fill);
    auto view = facts_message.open();
    auto verdict = judge(*view, config_);
    auto verdict_view = verdict.open();
    rewards.push_back(verdict_view->getReward());
    auto number = static_cast<uint32_t>(messages_.size());
    messages_.push_back(build<wire::TurnRecord>([&](wire::TurnRecord::Builder out) {
      out.setTurnId("id" + std::to_string(number));
      out.setTurn(number);
      if (number == 0) out.initPrompt(1)[0].initContent().setInline("p"); // as episodes record it
      out.initCompletion().initText().setInline("c");
      out.setFacts(*view);
      out.setVerdict(*verdict_view);
      if (view->getParsed().getOk()) {
        out.initCandidate().setInline("int x;");
        out.setCandidateSha256("ab");
      }
      if (spoil) spoil(out);
    }));
    return *this;
  }

  readiness result() const {
    std::vector<readiness_evidence> turns;
    for (const auto& x : messages_) turns.push_back(evidence_of(*x.open()));
    return readiness_of_episode(turns);
  }

  std::vector<double> rewards;

private:
  governance_config config_;
  std::vector<Message<wire::TurnRecord>> messages_;
};

void wrong(wire::TurnFacts::Builder out) {
  fill_wrong_result(out);
}

void hack(wire::TurnFacts::Builder out) {
  fill_good(out);
  add_finding(out, "late_write", wire::Severity::CRITICAL);
}

void lost(wire::TurnFacts::Builder out) {
  fill_good(out);
  out.initFault().setClass(wire::FaultClass::INFRASTRUCTURE);
}

TEST(readiness_of_episode, says_that_a_right_kernel_could_not_be_timed) {
  auto x = episode{}
               .turn([](auto out) {
                 fill_good(out);
                 out.getEvaluation().initTiming().setNotTimed(wire::NotTimed::MACHINE);
               })
               .result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_POSITIVE_SFT);
  EXPECT_THAT(x.reasons, Contains(HasSubstr("how fast it is could not be measured")));
}

TEST(judge_run, holes_of_turns_that_were_not_timed_count_against_a_trace_of_rewards) {
  run_counts x;
  x.episodes = 100;
  x.turns = 400;
  x.complete = x.sandbox_complete = true;
  x.unpaid = 10;
  EXPECT_TRUE(readiness_of_run(x).rl_reward_trace.eligible);
  EXPECT_THAT(readiness_of_run(x).rl_reward_trace.reasons,
              Contains(HasSubstr("10 of 100 episodes")));
  x.infrastructure = 1;
  EXPECT_FALSE(readiness_of_run(x).rl_reward_trace.eligible);
}

TEST(readiness_of_episode, an_accepted_end_is_positive_and_names_what_was_repaired) {
  auto x = episode{}.turn(fill_compile_error).turn(wrong).turn(fill_good).result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_POSITIVE_SFT);
  ASSERT_EQ(x.reasons.size(), 3u);
  EXPECT_THAT(x.reasons[1], HasSubstr("turn t0 failed to build"));
  EXPECT_THAT(x.reasons[2], HasSubstr("turn t1 gave wrong results"));
}

TEST(readiness_of_episode, failures_with_evidence_are_for_debugging) {
  auto x = episode{}.turn(fill_compile_error).turn(wrong).result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_NEGATIVE_DEBUG);
  EXPECT_EQ(x.reasons.size(), 2u);
  EXPECT_EQ(episode{}.turn(fill_crash).result().kind, EpisodeKind::USABLE_NEGATIVE_DEBUG);
}

TEST(readiness_of_episode, going_backwards_is_a_negative_transition) {
  EXPECT_EQ(episode{}.turn(fill_good).turn(wrong).result().kind,
            EpisodeKind::USABLE_NEGATIVE_TRANSITION);
  auto x = episode{}.turn(wrong).turn(fill_compile_error).result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_NEGATIVE_TRANSITION);
  EXPECT_THAT(x.reasons[0], HasSubstr("turn t0 passed 2 gates, turn t1 only 1"));
}

TEST(readiness_of_episode, a_hack_on_the_way_spoils_a_good_end) {
  auto x = episode{}.turn(hack).turn(fill_good).result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_NEGATIVE_TRANSITION);
  EXPECT_THAT(x.reasons[0], HasSubstr("turn t0 was rejected for an integrity violation"));
}

TEST(readiness_of_episode, a_slower_kernel_at_the_end_is_still_positive) {
  auto slow = [](wire::TurnFacts::Builder out) {
    fill_good(out);
    out.getEvaluation().getTiming().getSpeedup().setLow(0.5);
  };
  auto x = episode{}.turn(fill_good).turn(slow).result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_POSITIVE_SFT);
  EXPECT_THAT(x.reasons, Contains(HasSubstr("not faster")));
}

TEST(readiness_of_episode, a_correct_kernel_whose_text_is_gone_is_for_benchmarks_only) {
  auto x = episode{}.turn(fill_good, no_candidate).result();
  EXPECT_EQ(x.kind, EpisodeKind::BENCHMARK_ONLY);
  EXPECT_THAT(x.reasons, Contains("turn t0 lacks its candidate"));
  auto without_completion = [](wire::TurnRecord::Builder out) { out.initCompletion(); };
  EXPECT_EQ(episode{}.turn(wrong, without_completion).turn(fill_good).result().kind,
            EpisodeKind::BENCHMARK_ONLY);
}

TEST(readiness_of_episode, a_gap_in_the_turns_is_missing_provenance) {
  auto x =
      episode{}.turn(fill_good, [](wire::TurnRecord::Builder out) { out.setTurn(1); }).result();
  EXPECT_EQ(x.kind, EpisodeKind::BENCHMARK_ONLY);
}

TEST(readiness_of_episode, nothing_to_learn_from) {
  EXPECT_EQ(episode{}.result().kind, EpisodeKind::UNUSABLE);
  EXPECT_EQ(episode{}.turn(lost).turn(lost).result().kind, EpisodeKind::UNUSABLE);
  EXPECT_EQ(episode{}.turn(fill_format_error).result().kind, EpisodeKind::UNUSABLE);
  EXPECT_EQ(episode{}.turn(fill_compile_error, no_candidate).result().kind, EpisodeKind::UNUSABLE);
}

TEST(readiness_of_episode, a_turn_lost_to_our_own_fault_is_passed_over) {
  EXPECT_EQ(episode{}.turn(lost).turn(fill_good).result().kind, EpisodeKind::USABLE_POSITIVE_SFT);
  auto x = episode{}.turn(fill_good).turn(lost).result();
  EXPECT_EQ(x.kind, EpisodeKind::USABLE_POSITIVE_SFT);
  EXPECT_THAT(x.reasons, Contains(HasSubstr("our own fault")));
}

TEST(readiness_of_episode, the_same_rewards_whatever_the_readiness) {
  auto whole = episode{}.turn(wrong).turn(fill_good);
  auto torn = episode{}.turn(wrong, no_candidate).turn(fill_good, no_candidate);
  EXPECT_NE(whole.result().kind, torn.result().kind);
  EXPECT_EQ(whole.rewards, torn.rewards);
}

run_counts finished() {
  run_counts x;
  x.episodes = 32;
  x.turns = 80;
  x.usable_positive_sft = 20;
  x.complete = x.sandbox_complete = true;
  return x;
}

TEST(judge_run, a_clean_run_is_good_for_everything) {
  auto x = readiness_of_run(finished());
  EXPECT_TRUE(x.benchmark_reporting.eligible);
  EXPECT_TRUE(x.sft_collection.eligible);
  EXPECT_TRUE(x.rl_reward_trace.eligible);
  EXPECT_TRUE(x.rl_reward_trace.reasons.empty());
}

TEST(judge_run, an_unfinished_run_can_still_teach_by_example) {
  auto counts = finished();
  counts.complete = false;
  auto x = readiness_of_run(counts);
  EXPECT_FALSE(x.benchmark_reporting.eligible);
  EXPECT_TRUE(x.sft_collection.eligible);
  EXPECT_FALSE(x.rl_reward_trace.eligible);
}

TEST(judge_run, lost_episodes) {
  auto counts = finished();
  counts.infrastructure = 2;
  auto x = readiness_of_run(counts);
  EXPECT_FALSE(x.benchmark_reporting.eligible);
  EXPECT_TRUE(x.rl_reward_trace.eligible);
  EXPECT_THAT(x.rl_reward_trace.reasons, Contains(HasSubstr("2 of 32")));
  counts.infrastructure = 4;
  EXPECT_FALSE(readiness_of_run(counts).rl_reward_trace.eligible);
}

TEST(judge_run, lost_turns_that_go_with_something_are_said_of_the_reward_trace) {
  auto counts = finished();
  counts.infrastructure = 2;
  counts.alarms = {"lost turns go with the task"};
  auto x = readiness_of_run(counts);
  EXPECT_TRUE(x.rl_reward_trace.eligible);
  EXPECT_THAT(x.rl_reward_trace.reasons, Contains("lost turns go with the task"));
}

TEST(judge_run, a_missing_wall_and_an_empty_run_are_good_for_nothing) {
  auto counts = finished();
  counts.sandbox_complete = false;
  for (const auto& x : {readiness_of_run(counts), readiness_of_run({})}) {
    EXPECT_FALSE(x.benchmark_reporting.eligible);
    EXPECT_FALSE(x.sft_collection.eligible);
    EXPECT_FALSE(x.rl_reward_trace.eligible);
  }
  EXPECT_THAT(readiness_of_run(counts).sft_collection.reasons,
              Contains(::testing::HasSubstr("`kernelmill doctor`")));
}

} // namespace readiness_test
} // namespace kernelmill::fixtures
