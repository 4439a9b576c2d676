#include "actors/search/searched_episode.hpp"

#include <gtest/gtest.h>

#include "actors/governance/judge.hpp"
#include "messages/message.hpp"
#include "tests/unit/governance/facts.hpp"

namespace kernelmill::searched_episode_test {

using namespace search;

namespace {

struct turn_of {
  double low;
  const char* kernel;
  wire::Outcome outcome = wire::Outcome::ACCEPTED;
  const char* category = "success";
};

Message<wire::EpisodeHistory> history_of(const std::vector<turn_of>& turns) {
  return build<wire::EpisodeHistory>([&](wire::EpisodeHistory::Builder history) {
    auto list = history.initTurns(static_cast<unsigned>(turns.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      auto x = list[i];
      x.setTurn(i);
      if (i == 0) x.initParents(1).set(0, "g1.e2");
      auto completion = x.initCompletion();
      completion.initText().setInline(std::string{"<think>\n  Fewer passes.\nThen more.\n</think>\n"
                                                  "<KERNEL>\n"} +
                                      turns[i].kernel + "\n</KERNEL>");
      completion.setPromptTokens(100);
      completion.setCompletionTokens(20);
      x.setCandidateSha256(turns[i].kernel);
      x.initCandidate().setInline(turns[i].kernel);
      auto facts = x.initFacts();
      fixtures::fill_good(facts);
      facts.getEvaluation().setSeconds(2);
      auto speedup = facts.getEvaluation().getTiming().getSpeedup();
      speedup.setLow(turns[i].low);
      speedup.setEstimate(turns[i].low * 1.1);
      speedup.setHigh(turns[i].low * 1.2);
      auto verdict = judge(facts.asReader(), {});
      x.setVerdict(*verdict.open());
      x.getVerdict().setOutcome(turns[i].outcome);
      x.getVerdict().setCategory(turns[i].category);
    }
  });
}

searched_episode read(const std::vector<turn_of>& turns) {
  return searched(*history_of(turns).open(), "g2.e0", {});
}

} // namespace

TEST(searched_episode, the_fastest_verified_turn_is_the_node) {
  auto x = read({{2, "a"}, {3, "#pragma omp simd"}, {1, "c"}});
  EXPECT_EQ(x.what.state, node_state::verified);
  EXPECT_EQ(x.turn, 1u);
  EXPECT_EQ(x.source, "#pragma omp simd");
  EXPECT_EQ(x.what.niche, "simd");
  EXPECT_DOUBLE_EQ(x.what.low, 3);
  EXPECT_DOUBLE_EQ(x.what.high, 3 * 1.2);
  EXPECT_EQ(x.idea, "Fewer passes.");
  EXPECT_EQ(x.parent, "g1.e2");
}

TEST(searched_episode, all_turns_cost) {
  auto x = read({{2, "a"}, {3, "b", wire::Outcome::REJECTED, "wrong_result"}});
  EXPECT_EQ(x.cost.turns, 2u);
  EXPECT_EQ(x.cost.prompt_tokens, 200u);
  EXPECT_EQ(x.cost.completion_tokens, 40u);
  EXPECT_DOUBLE_EQ(x.cost.slot_seconds, 4);
}

TEST(searched_episode, of_failed_turns_the_last_is_the_node) {
  auto x = read({{0, "a", wire::Outcome::REJECTED, "wrong_result"},
                 {0, "b", wire::Outcome::REJECTED, "compile_error"}});
  EXPECT_EQ(x.what.state, node_state::failed);
  EXPECT_EQ(x.turn, 1u);
  EXPECT_EQ(x.category, "compile_error");
  EXPECT_DOUBLE_EQ(x.what.low, 0);
}

TEST(searched_episode, a_copy_of_what_was_shown_is_nothing_new) {
  EXPECT_EQ(read({{2, "a", wire::Outcome::ACCEPTED, "unchanged"}}).what.state, node_state::failed);
}

TEST(searched_episode, what_the_infrastructure_lost_is_lost) {
  EXPECT_EQ(read({}).what.state, node_state::lost);
  auto x = read({{2, "a", wire::Outcome::INFRASTRUCTURE, "gpu_lost"}});
  EXPECT_EQ(x.what.state, node_state::lost);
  EXPECT_EQ(x.cost.turns, 1u);
}

TEST(search_budget, each_limit_ends_it) {
  search_cost used{10, 3'000'000, 1'000'000, 60};
  EXPECT_TRUE(search_budget{}.allows(used));
  EXPECT_FALSE((search_budget{60, 0, 0, 0, 0}.allows(used)));
  EXPECT_TRUE((search_budget{61, 0, 0, 0, 0}.allows(used)));
  EXPECT_FALSE((search_budget{0, 4'000'000, 0, 0, 0}.allows(used)));
  search_budget money{0, 0, 5, 1, 2}; // three dollars of prompts and two of completions
  EXPECT_DOUBLE_EQ(money.dollars_of(used), 5);
  EXPECT_FALSE(money.allows(used));
}

} // namespace kernelmill::searched_episode_test
