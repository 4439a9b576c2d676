#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/device/contents_plan.hpp"

using namespace kernelmill;
using testing::Contains;
using testing::Not;

namespace contents_plan_test {

argument tensor(const std::string& name, argument_role role, const std::string& fill,
                dtype type = dtype::f32) {
  argument x;
  x.name = name;
  x.role = role;
  x.type = type;
  x.shape.push_back(*expression::parse("n"));
  x.fill = fill;
  if (type == dtype::i32) x.fill_range = {*expression::parse("0"), *expression::parse("n")};
  return x;
}

task task_of(std::vector<argument> arguments,
             std::vector<std::map<std::string, std::string>> fills) {
  task x;
  x.arguments = std::move(arguments);
  x.timed.scalars = {{"n", 64}};
  for (auto& each : fills) {
    task_case c;
    c.scalars = {{"n", 8}};
    c.fills = std::move(each);
    x.cases.push_back(std::move(c));
  }
  return x;
}

std::vector<std::string> names(const task& x) {
  std::vector<std::string> result;
  for (const auto& kind : kinds_of_contents(x)) result.push_back(kind.name);
  return result;
}

TEST(kinds_of_contents, are_those_that_a_gpu_can_make_and_the_tasks_own_comes_first) {
  auto x =
      task_of({tensor("x", argument_role::input, "normal"), tensor("y", argument_role::output, "")},
              {{}, {{"x", "signs"}}, {{"x", "masked"}}, {{"x", "zeros"}}});
  auto found = names(x);
  EXPECT_EQ(found.front(), "normal");
  EXPECT_THAT(found, Contains("signs"));
  EXPECT_THAT(found, Contains("zeros"));
  EXPECT_THAT(found, Contains("unequal_rows"));
  EXPECT_THAT(found, Not(Contains("masked"))); // no GPU makes it
  EXPECT_EQ(kinds_of_contents(x)[1].fills, (std::vector<std::string>{"signs", ""}));
}

TEST(kinds_of_contents, indices_have_the_kinds_of_the_cases) {
  auto x = task_of({tensor("table", argument_role::input, "index", dtype::i32)},
                   {{}, {{"table", "constant"}}, {{"table", "permutation"}}});
  EXPECT_EQ(names(x), (std::vector<std::string>{"index", "constant"}));
}

TEST(contents_plan, every_kind_is_timed_or_checked_in_the_first_round) {
  for (size_t kinds : {1, 2, 7, 8, 16, 40}) {
    uint64_t state = kinds;
    contents_plan plan{kinds, [&] { return state = state * 6364136223846793005u + 1; }};
    std::set<size_t> timed{0};
    std::multiset<size_t> checked;
    for (size_t i = 0; i < 3 * plan.round(); ++i) {
      timed.insert(plan.kind_of(i));
      for (size_t kind : plan.checked_before(i)) checked.insert(kind);
    }
    EXPECT_EQ(timed.size() + checked.size(), kinds);
    for (size_t kind : checked) EXPECT_EQ(timed.count(kind), 0u);
  }
}

TEST(contents_plan, kinds_that_are_unfit_to_be_timed_are_checked) {
  for (auto [kinds, unfit] : {std::pair{1, 3}, {5, 1}, {9, 4}}) {
    uint64_t state = 3;
    contents_plan plan{size_t(kinds), [&] { return state = state * 6364136223846793005u + 1; },
                       size_t(unfit)};
    std::multiset<size_t> checked;
    for (size_t i = 0; i < 3 * plan.round() + 3; ++i) {
      EXPECT_LT(plan.kind_of(i), size_t(kinds));
      for (size_t kind : plan.checked_before(i)) checked.insert(kind);
    }
    for (int i = 0; i < unfit; ++i) EXPECT_EQ(checked.count(size_t(kinds + i)), 1u) << kinds;
  }
}

TEST(contents_plan, half_of_the_pairs_have_the_tasks_own_kind_and_the_rest_take_turns) {
  uint64_t state = 7;
  auto draw = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  contents_plan plan{12, draw};
  std::map<size_t, int> count;
  for (size_t pair = 0; pair < plan.round(); ++pair) ++count[plan.kind_of(pair)];
  EXPECT_EQ(plan.round(), 2 * contents_plan::most_others);
  EXPECT_EQ(count[0], int(contents_plan::most_others));
  EXPECT_EQ(count.size(), contents_plan::most_others + 1);
  EXPECT_EQ(plan.kind_of(1), plan.kind_of(1 + plan.round()));
}

TEST(contents_plan, the_same_draws_make_the_same_plan_and_others_another) {
  auto plan_of = [](uint64_t seed) {
    auto draw = [&] { return seed = seed * 6364136223846793005u + 1442695040888963407u; };
    contents_plan plan{14, draw};
    std::vector<size_t> result;
    for (size_t pair = 0; pair < plan.round(); ++pair) result.push_back(plan.kind_of(pair));
    return result;
  };
  EXPECT_EQ(plan_of(1), plan_of(1));
  EXPECT_NE(plan_of(1), plan_of(2));
}

TEST(contents_plan, of_one_kind_has_nothing_else) {
  contents_plan plan{1, [] { return uint64_t{5}; }};
  EXPECT_EQ(plan.round(), 0u);
  for (size_t pair = 0; pair < 9; ++pair) EXPECT_EQ(plan.kind_of(pair), 0u);
}

} // namespace contents_plan_test
