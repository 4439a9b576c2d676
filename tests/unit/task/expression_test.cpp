#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/task.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace expression_test {

int64_t value_of(const std::string& text, const scalar_values& scalars = {}) {
  auto parsed = expression::parse(text);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  auto value = parsed->evaluate(scalars);
  if (!value) throw std::runtime_error(value.error().message);
  return *value;
}

std::string problem_of(const std::string& text, const scalar_values& scalars = {}) {
  auto parsed = expression::parse(text);
  if (!parsed) return parsed.error().message;
  auto value = parsed->evaluate(scalars);
  return value ? "" : value.error().message;
}

TEST(expression, products_bind_tighter_than_sums) {
  EXPECT_EQ(value_of("2+3*4"), 14);
  EXPECT_EQ(value_of("(2+3)*4"), 20);
  EXPECT_EQ(value_of("20-5-3"), 12);
  EXPECT_EQ(value_of("100/7%5"), 4);
}

TEST(expression, minus_in_front_of_anything) {
  EXPECT_EQ(value_of("-3*-(2+1)"), 9);
  EXPECT_EQ(value_of("--5"), 5);
}

TEST(expression, functions_nest) {
  EXPECT_EQ(value_of("ceil_div(max(rows, cols), min(4, 8))", {{"rows", 9}, {"cols", 5}}), 3);
  EXPECT_EQ(value_of("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(value_of("ceil_div(7, -2)"), -3);
}

TEST(expression, scalars_by_name) {
  EXPECT_EQ(value_of("4*rows*cols + 4*rows", {{"rows", 3}, {"cols", 5}}), 72);
}

TEST(expression, a_missing_scalar_is_named) {
  EXPECT_THAT(problem_of("rows*cols", {{"rows", 3}}), HasSubstr("no scalar is named 'cols'"));
}

TEST(expression, overflow_is_an_error) {
  EXPECT_THAT(problem_of("n*n*n", {{"n", INT64_C(4000000000)}}), HasSubstr("64 bits"));
  EXPECT_THAT(problem_of("99999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(problem_of("-n", {{"n", INT64_MIN}}), HasSubstr("64 bits"));
  EXPECT_THAT(problem_of("n/m", {{"n", INT64_MIN}, {"m", -1}}), HasSubstr("64 bits"));
  EXPECT_EQ(value_of("n%m", {{"n", INT64_MIN}, {"m", -1}}), 0);
}

TEST(expression, division_by_zero_is_an_error) {
  for (auto text : {"1/0", "1%0", "ceil_div(1, 0)"})
    EXPECT_THAT(problem_of(text), HasSubstr("division by zero")) << text;
}

TEST(expression, broken_texts_name_the_column) {
  EXPECT_THAT(problem_of("2+"), HasSubstr("ends too early at column 3"));
  EXPECT_THAT(problem_of("(2"), HasSubstr("expected ')'"));
  EXPECT_THAT(problem_of("2 $ 3"), HasSubstr("unexpected '$' at column 3"));
  EXPECT_THAT(problem_of("log(2)"), HasSubstr("no function 'log'"));
  EXPECT_THAT(problem_of(""), HasSubstr("ends too early"));
  EXPECT_THAT(problem_of("2 3"), HasSubstr("unexpected '3'"));
}

TEST(expression, deep_nesting_does_not_exhaust_the_stack) {
  EXPECT_THAT(problem_of(std::string(400, '(') + "1" + std::string(400, ')')), HasSubstr("nested"));
  EXPECT_THAT(problem_of(std::string(400, '-') + "1"), HasSubstr("nested"));
}

} // namespace expression_test
