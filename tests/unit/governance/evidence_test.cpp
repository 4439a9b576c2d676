#include "messages/evidence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/governance/judge.hpp"
#include "tests/unit/governance/facts.hpp"

namespace kernelmill {
namespace evidence_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Message<wire::TurnRecord> turn_with(void (*fill)(wire::TurnFacts::Builder), uint32_t number = 0,
                                    void (*spoil)(wire::TurnFacts::Builder) = nullptr) {
  return build<wire::TurnRecord>([&](wire::TurnRecord::Builder x) {
    x.setTurn(number);
    x.setTurnId("id");
    x.setParentTurnId("before");
    x.initPrompt(1)[0].initContent().setInline("do it");
    x.initCompletion().initText().setInline("<KERNEL>int x;</KERNEL>");
    x.initCandidate().setInline("int x;");
    x.setCandidateSha256("sha");
    auto facts = x.initFacts();
    fill(facts);
    if (spoil) spoil(facts);
    auto verdict = judge(facts.asReader(), {});
    x.setVerdict(*verdict.open());
  });
}

/// One case of two is right.
void fill_half_right(wire::TurnFacts::Builder x) {
  fixtures::fill_good(x);
  auto evaluation = x.getEvaluation();
  evaluation.setCorrect(false);
  fixtures::fill_case(evaluation.getCases()[1], "odd", true, false);
  evaluation.initTiming();
}

void fill_lost(wire::TurnFacts::Builder x) {
  fixtures::fill_good(x);
  auto fault = x.initFault();
  fault.setClass(wire::FaultClass::INFRASTRUCTURE);
  fault.setCategory("gpu_lost");
}

double score(const Message<wire::TurnRecord>& x) {
  return evidence_score(evidence_parts_of(*x.open()));
}

turn_quality quality(const Message<wire::TurnRecord>& x) {
  return quality_of(*x.open());
}

TEST(evidence, of_a_turn_with_everything_but_a_profile_is_95_hundredths) {
  EXPECT_DOUBLE_EQ(score(turn_with(fixtures::fill_good)), 0.95);
  auto profiled = turn_with(fixtures::fill_good, 0,
                            [](wire::TurnFacts::Builder x) { x.initProfile().setAvailable(true); });
  EXPECT_DOUBLE_EQ(score(profiled), 1.0);
}

TEST(evidence, says_what_was_looked_at_and_not_how_it_ended) {
  // Decided: wrong. What comes behind, determinism and time, was not looked at.
  EXPECT_DOUBLE_EQ(score(turn_with(fill_half_right)), .35 + .10 + .05);
  auto broken = evidence_parts_of(*turn_with(fixtures::fill_compile_error).open());
  EXPECT_EQ(broken.correctness, 0);
  EXPECT_EQ(broken.lineage, 1);
  EXPECT_GT(broken.build, 0);
}

TEST(evidence, of_a_lost_turn_is_its_lineage) {
  EXPECT_DOUBLE_EQ(score(turn_with(fill_lost)), .05);
}

TEST(evidence, weighs_to_one) {
  EXPECT_DOUBLE_EQ(evidence_score({1, 1, 1, 1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(evidence_score({0, 1, 0, 0, 0, 0}), .25);
}

TEST(quality, tells_near_misses_from_failures) {
  EXPECT_EQ(quality(turn_with(fixtures::fill_good)), turn_quality::positive);
  EXPECT_EQ(quality(turn_with(fill_half_right)), turn_quality::near_miss);
  EXPECT_EQ(quality(turn_with(fixtures::fill_compile_error)), turn_quality::negative);
  EXPECT_EQ(quality(turn_with(fill_lost)), turn_quality::unusable);
  auto copy = turn_with(fixtures::fill_good, 0,
                        [](wire::TurnFacts::Builder x) { x.setUnchanged("the starter"); });
  EXPECT_EQ(quality(copy), turn_quality::negative);
}

TEST(quality, of_a_kernel_with_a_critical_finding_is_no_near_miss) {
  auto x = turn_with(fill_half_right, 0, [](wire::TurnFacts::Builder facts) {
    auto finding = facts.getEvaluation().initFindings(1)[0];
    finding.setRule("background_work");
    finding.setSeverity(wire::Severity::CRITICAL);
  });
  EXPECT_EQ(quality(x), turn_quality::negative);
}

Message<wire::TurnRecord> open_turn(uint32_t number) {
  auto plain = turn_with([](wire::TurnFacts::Builder) {}, number);
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  auto x = builder.getRoot<wire::TurnRecord>();
  x.initCandidate();
  x.setCandidateSha256("");
  x.initVerdict().setOutcome(wire::Outcome::OPEN);
  return Message<wire::TurnRecord>{builder};
}

TEST(quality, of_a_turn_that_asked_for_no_verdict_is_none) {
  EXPECT_EQ(quality(open_turn(0)), turn_quality::unusable);
  EXPECT_DOUBLE_EQ(score(open_turn(0)), 0.75 * .05) << "its lineage without a candidate";
}

episode_evidence summary(const std::vector<Message<wire::TurnRecord>>& turns,
                         std::optional<uint32_t> best, std::optional<wire::EpisodeKind> kind) {
  evidence_summary sum;
  for (const auto& x : turns) {
    auto opened = x.open();
    sum.add(*opened, opened->getVerdict());
  }
  return sum.finish(best, kind);
}

TEST(evidence, of_an_episode_is_that_of_its_best_turn) {
  auto x = summary({turn_with(fill_half_right), turn_with(fixtures::fill_good, 1)}, 1,
                   wire::EpisodeKind::USABLE_POSITIVE_SFT);
  EXPECT_DOUBLE_EQ(x.score, 0.95);
  EXPECT_EQ(x.quality, turn_quality::positive);
  for (const auto* use : {&x.benchmark, &x.sft, &x.rl}) {
    EXPECT_TRUE(use->eligible);
    EXPECT_THAT(use->reasons, IsEmpty());
  }
}

TEST(evidence, of_an_episode_does_not_ask_open_turns_for_a_verdict) {
  auto x = summary({open_turn(0), turn_with(fixtures::fill_good, 1)}, 1,
                   wire::EpisodeKind::USABLE_POSITIVE_SFT);
  EXPECT_TRUE(x.rl.eligible) << (x.rl.reasons.empty() ? "" : x.rl.reasons[0]);
  EXPECT_TRUE(x.benchmark.eligible);
  EXPECT_EQ(x.quality, turn_quality::positive);
}

TEST(evidence, says_why_an_episode_is_not_for_a_use) {
  auto near = summary({turn_with(fill_half_right)}, 0, wire::EpisodeKind::USABLE_NEGATIVE_DEBUG);
  EXPECT_EQ(near.quality, turn_quality::near_miss);
  EXPECT_TRUE(near.benchmark.eligible);
  EXPECT_TRUE(near.rl.eligible);
  EXPECT_THAT(near.sft.reasons, ElementsAre("it is not usable_positive_sft"));

  auto lost = summary({turn_with(fixtures::fill_good), turn_with(fill_lost, 1)}, 0,
                      wire::EpisodeKind::USABLE_POSITIVE_SFT);
  EXPECT_TRUE(lost.sft.eligible);
  EXPECT_FALSE(lost.rl.eligible);
  EXPECT_THAT(lost.rl.reasons, ::testing::Contains("a turn has no reward"));

  auto open = summary({turn_with(fixtures::fill_good)}, std::nullopt, std::nullopt);
  EXPECT_THAT(open.benchmark.reasons, ElementsAre("the episode has not ended"));
}

} // namespace evidence_test
} // namespace kernelmill
