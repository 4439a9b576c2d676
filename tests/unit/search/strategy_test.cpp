#include "actors/search/strategy.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/oracles/landscape.hpp"
#include "tests/oracles/measured_landscape.hpp"

namespace kernelmill::strategy_test {

using namespace search;

namespace {

node verified(double low, const std::string& sha256, std::optional<uint32_t> parent = {},
              const std::string& niche = "plain") {
  return {node_state::verified, parent, low, low * 1.05, low * 1.1, sha256, niche};
}

node failed(const std::string& sha256, std::optional<uint32_t> parent = {}) {
  return {node_state::failed, parent, 0, 0, 0, sha256, "plain"};
}

strategy_settings settings_of(strategy_kind kind) {
  strategy_settings how;
  how.kind = kind;
  how.width = 4;
  how.fresh = 0;
  return how;
}

std::vector<uint32_t> parents_of(const std::vector<start>& starts) {
  std::vector<uint32_t> result;
  for (const auto& x : starts)
    if (x.parent) result.push_back(*x.parent);
  return result;
}

/// Four generations of a search with so many expansions in each.
search_tree grown(strategy_kind kind) {
  auto how = settings_of(kind);
  oracles::drawn_landscape land{3};
  search_tree nodes;
  for (int generation = 0; generation < 4; ++generation) {
    for (const auto& x : choose(how, nodes)) {
      auto made =
          land.expand(static_cast<uint32_t>(nodes.size()), x.parent ? &nodes[*x.parent] : nullptr);
      made.parent = x.parent;
      nodes.push_back(made);
    }
  }
  return nodes;
}

constexpr strategy_kind all_kinds[] = {strategy_kind::best_of_n, strategy_kind::random,
                                       strategy_kind::beam, strategy_kind::islands,
                                       strategy_kind::tree};

} // namespace

TEST(strategy, the_first_generation_starts_from_the_task_alone) {
  for (auto kind : all_kinds) EXPECT_TRUE(parents_of(choose(settings_of(kind), {})).empty());
}

TEST(strategy, a_choice_depends_on_finished_generations_and_the_seed_alone) {
  for (auto kind : all_kinds) {
    auto nodes = grown(kind);
    auto how = settings_of(kind);
    for (size_t finished = 0; finished < nodes.size(); finished += how.width) {
      auto starts = choose(how, std::span{nodes}.first(finished));
      ASSERT_EQ(starts.size(), how.width);
      for (size_t i = 0; i < how.width; ++i)
        EXPECT_EQ(starts[i].parent, nodes[finished + i].parent) << to_string(kind);
    }
  }
}

TEST(strategy, words_name_all_kinds) {
  for (auto kind : all_kinds) EXPECT_EQ(strategy_of(to_string(kind)), kind);
  EXPECT_FALSE(strategy_of("greedy"));
}

TEST(strategy, failed_candidates_are_mended_while_nothing_is_verified) {
  search_tree nodes{failed("a"), failed("b"), {}, failed("")};
  for (auto kind : {strategy_kind::beam, strategy_kind::islands, strategy_kind::tree}) {
    // The newest first; neither what was lost nor a completion without a candidate.
    EXPECT_EQ(parents_of(choose(settings_of(kind), nodes)), (std::vector<uint32_t>{1, 0}));
  }
  EXPECT_TRUE(parents_of(choose(settings_of(strategy_kind::best_of_n), nodes)).empty());
}

TEST(strategy, a_beam_takes_turns_among_the_fastest) {
  auto how = settings_of(strategy_kind::beam);
  how.beam = 2;
  search_tree nodes{verified(1, "a"), verified(3, "b"), verified(2, "c"), failed("d")};
  EXPECT_EQ(parents_of(choose(how, nodes)), (std::vector<uint32_t>{1, 2, 1, 2}));
}

TEST(strategy, equal_candidates_take_one_place_in_a_beam) {
  auto how = settings_of(strategy_kind::beam);
  how.beam = 2;
  search_tree nodes{verified(3, "a"), verified(3.1, "a"), verified(2, "b"), failed("d")};
  EXPECT_EQ(parents_of(choose(how, nodes)), (std::vector<uint32_t>{0, 2, 0, 2}));
}

TEST(strategy, islands_keep_the_slower_niche) {
  auto how = settings_of(strategy_kind::islands);
  how.islands = 1;
  how.width = 64;
  search_tree nodes(64);
  nodes[0] = verified(4, "a", {}, "simd");
  nodes[1] = verified(3, "b", {}, "simd");
  nodes[2] = verified(2, "c", {}, "threads");
  auto parents = parents_of(choose(how, nodes));
  auto count = [&](uint32_t x) { return std::count(parents.begin(), parents.end(), x); };
  EXPECT_EQ(count(1), 0); // another one of its niche is faster
  EXPECT_GT(count(2), 0);
  EXPECT_GT(count(0), count(2));
}

TEST(strategy, elites_migrate_between_islands_at_the_end_of_a_period) {
  auto how = settings_of(strategy_kind::islands);
  how.islands = 2;
  how.migration = 2;
  search_tree nodes(8);
  nodes[0] = verified(4, "a"); // on the first island
  EXPECT_EQ(parents_of(choose(how, std::span{nodes}.first(4))), (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(parents_of(choose(how, nodes)), (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST(strategy, a_tree_leaves_a_candidate_that_does_not_get_faster) {
  auto how = settings_of(strategy_kind::tree);
  search_tree nodes{verified(2, "a"), verified(1.9, "b"), failed("c"), failed("d")};
  for (int i = 0; i < 12; ++i) nodes.push_back(failed("e" + std::to_string(i), 0));
  auto parents = parents_of(choose(how, nodes));
  EXPECT_EQ(std::set<uint32_t>(parents.begin(), parents.end()), (std::set<uint32_t>{1}));
}

TEST(strategy, the_upper_bound_decides_in_a_tree) {
  auto how = settings_of(strategy_kind::tree);
  how.exploration = 0;
  search_tree nodes{verified(2, "a"), verified(1.9, "b"), failed("c"), failed("d")};
  nodes[1].high = 4; // hardly known, and so worth a look
  EXPECT_EQ(parents_of(choose(how, nodes)), (std::vector<uint32_t>{1, 1, 1, 1}));
}

TEST(strategy, the_best_has_the_highest_lower_bound) {
  search_tree nodes{failed("a"), verified(2, "b"), verified(1.9, "c")};
  nodes[2].high = 9;
  EXPECT_EQ(best_of(nodes), 1u);
  EXPECT_FALSE(best_of(std::span{nodes}.first(1)));
}

// The full table is tests/bench/search_bench.cpp's.
TEST(strategy, searches_come_further_than_independent_attempts_with_the_same_budget) {
  auto mean = [](strategy_kind kind) {
    double sum = 0;
    constexpr uint32_t seeds = 6;
    for (uint32_t seed = 0; seed < seeds; ++seed) {
      strategy_settings how;
      how.kind = kind;
      how.seed = seed;
      sum += oracles::search_shares(oracles::drawn_landscape{seed}, how, 120).back();
    }
    return sum / seeds;
  };
  auto attempts = mean(strategy_kind::best_of_n);
  auto at_random = mean(strategy_kind::random);
  for (auto kind : {strategy_kind::beam, strategy_kind::islands, strategy_kind::tree}) {
    EXPECT_GT(mean(kind), attempts + 0.2) << to_string(kind);
    EXPECT_GT(mean(kind), at_random) << to_string(kind);
  }
}

TEST(measured_landscape, a_search_finds_the_fastest_kernel_of_a_table) {
  std::istringstream table{"2 3\n0 0 plain 1 0.99 1.01\n0 1 plain 0.9 0.89 0.91\n"
                           "0 2 plain 1.2 1.19 1.21\n1 0 simd 0.5 0.49 0.51\n"
                           "1 1 simd 4 3.99 4.01\n"}; // 1 2 was never timed
  auto land = oracles::measured_landscape::read(table);
  ASSERT_TRUE(land);
  EXPECT_DOUBLE_EQ(land->optimum(), 2);
  EXPECT_DOUBLE_EQ(land->doublings(0), 0);
  EXPECT_EQ(land->size(), 6u);
  land->seed(5);
  auto reached = oracles::search_shares(*land, settings_of(strategy_kind::tree), 80);
  EXPECT_DOUBLE_EQ(reached.back(), 1);
}

TEST(measured_landscape, text_that_is_no_table_is_refused) {
  for (const char* text : {"", "words\n", "2 3\n0 3 plain 1 1 1\n", "2 3\n0 0 plain 1\n",
                           "2 3\n1 1 plain 1 0.9 1.1\n"}) {
    std::istringstream table{text};
    EXPECT_FALSE(oracles::measured_landscape::read(table)) << text;
  }
}

} // namespace kernelmill::strategy_test
