#include "gpu/task/timed_kinds.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kernelmill;
using testing::Contains;
using testing::Not;

namespace timed_kinds_test {

argument tensor(const std::string& name, argument_role role, dtype type, std::string fill,
                std::vector<const char*> shape) {
  argument result;
  result.name = name;
  result.role = role;
  result.type = type;
  result.fill = std::move(fill);
  for (const auto* x : shape) result.shape.push_back(*expression::parse(x));
  return result;
}

task softmax() {
  task result;
  result.arguments = {tensor("x", argument_role::input, dtype::f32, "normal", {"rows", "cols"}),
                      tensor("y", argument_role::output, dtype::f32, "", {"rows", "cols"})};
  result.timed.scalars = {{"rows", 4}, {"cols", 8}};
  return result;
}

task_case with(const std::string& name, std::map<std::string, std::string> fills) {
  task_case result;
  result.name = name;
  result.scalars = {{"rows", 1}, {"cols", 2}};
  result.fills = std::move(fills);
  return result;
}

std::vector<std::string> names(const std::vector<task_case>& kinds) {
  std::vector<std::string> result;
  for (const auto& x : kinds) result.push_back(x.name);
  return result;
}

TEST(timed_kinds, the_tasks_own_comes_first_and_each_once) {
  auto x = softmax();
  x.cases = {with("a", {}), with("b", {{"x", "large"}}), with("c", {{"x", "large"}})};
  auto kinds = timed_kinds(x, x.timed);
  auto all = names(kinds);
  EXPECT_EQ(all[0], "normal");
  EXPECT_EQ(all[1], "large");
  EXPECT_EQ(std::count(all.begin(), all.end(), "large"), 1);
  for (const auto& kind : kinds) EXPECT_EQ(kind.scalars, x.timed.scalars) << kind.name;
}

TEST(timed_kinds, adds_what_is_like_the_tasks_own) {
  auto x = softmax();
  EXPECT_THAT(names(timed_kinds(x, x.timed)), Contains("few_negatives"));
  EXPECT_THAT(names(timed_kinds(x, x.timed)), Not(Contains("few_outliers")));
  x.cases = {with("b", {{"x", "outlier"}})};
  EXPECT_THAT(names(timed_kinds(x, x.timed)), Contains("few_outliers"));
}

TEST(timed_kinds, a_task_of_positive_numbers_gets_no_negative_ones) {
  auto x = softmax();
  x.arguments[0].fill = "uniform";
  EXPECT_THAT(names(timed_kinds(x, x.timed)), testing::ElementsAre("uniform"));
}

TEST(timed_kinds, names_tell_the_arguments_where_they_differ) {
  auto x = softmax();
  x.arguments.push_back(tensor("w", argument_role::input, dtype::f32, "normal", {"cols"}));
  x.cases = {with("b", {{"x", "signs"}}), with("c", {{"x", "signs"}, {"w", "signs"}})};
  auto all = names(timed_kinds(x, x.timed));
  EXPECT_THAT(all, Contains("x=signs w=normal"));
  EXPECT_THAT(all, Contains("signs"));
  EXPECT_THAT(all, Not(Contains("x=normal w=near_one")));
}

} // namespace timed_kinds_test
