#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/analysis/simulate/distribution.hpp"

namespace kernelmill::simulating {

namespace distribution_test {

std::vector<double> draws(const distribution& x, size_t count) {
  random_source from{7};
  std::vector<double> result;
  for (size_t i = 0; i < count; ++i) result.push_back(x.draw(from));
  return result;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (auto one : x) sum += one;
  return sum / static_cast<double>(x.size());
}

TEST(distribution, a_number_is_constant) {
  auto x = distribution::parse("0.15");
  ASSERT_TRUE(x);
  EXPECT_EQ(draws(*x, 3), (std::vector<double>{0.15, 0.15, 0.15}));
  EXPECT_EQ(x->text(), "0.15");
  EXPECT_EQ(x->mean(), 0.15);
}

TEST(distribution, two_dots_are_uniform_between_their_ends) {
  auto x = distribution::parse("1..3");
  ASSERT_TRUE(x);
  auto all = draws(*x, 100'000);
  EXPECT_GE(*std::min_element(all.begin(), all.end()), 1);
  EXPECT_LT(*std::max_element(all.begin(), all.end()), 3);
  EXPECT_NEAR(mean_of(all), 2, 0.01);
  EXPECT_EQ(x->text(), "1..3");
}

TEST(distribution, a_colon_is_lognormal_with_that_median_and_90th_percentile) {
  auto x = distribution::parse("20:60");
  ASSERT_TRUE(x);
  auto all = draws(*x, 200'000);
  EXPECT_NEAR(percentile(all, 0.5), 20, 0.3);
  EXPECT_NEAR(percentile(all, 0.9), 60, 1.2);
  EXPECT_NEAR(mean_of(all), x->mean(), 0.4);
  EXPECT_EQ(x->text(), "20:60");
}

TEST(distribution, measured_values_are_drawn_as_often_as_they_were_seen) {
  auto x = distribution::measured({5, 1, 1, 1});
  auto all = draws(x, 40'000);
  EXPECT_NEAR(static_cast<double>(std::count(all.begin(), all.end(), 5.0)), 10'000, 400);
  EXPECT_EQ(std::count(all.begin(), all.end(), 5.0) + std::count(all.begin(), all.end(), 1.0),
            40'000);
  EXPECT_EQ(x.mean(), 2);
}

TEST(distribution, what_cannot_be_read_is_a_usage_error_with_the_three_forms) {
  for (const auto* text :
       {"", "fast", "-1", "3..1", "60:20", "0:1", "1..", ":2", "1e99", "nan", "1 "}) {
    auto x = distribution::parse(text);
    ASSERT_FALSE(x) << text;
    EXPECT_EQ(x.error().category, "usage");
    EXPECT_THAT(x.error().hint, testing::HasSubstr("20:60"));
  }
}

TEST(percentile, is_the_nearest_of_the_values) {
  std::vector<double> x{4, 1, 3, 2};
  EXPECT_EQ(percentile(x, 0.5), 2);
  EXPECT_EQ(percentile(x, 0.9), 4);
  EXPECT_EQ(percentile(x, 0), 1);
  std::vector<double> none;
  EXPECT_EQ(percentile(none, 0.5), 0);
}

} // namespace distribution_test

} // namespace kernelmill::simulating
