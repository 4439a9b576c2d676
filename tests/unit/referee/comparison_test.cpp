#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/referee/comparison.hpp"

using namespace kernelmill;

namespace comparison_test {

constexpr float inf = std::numeric_limits<float>::infinity();

comparison one(float got, double want, double scale) {
  std::vector<float> g{got};
  std::vector<double> w{want};
  std::vector<double> s{scale};
  return compare(g, w, s, 4, "y");
}

TEST(comparison, an_error_at_the_bound_passes_and_beyond_it_fails) {
  double bound = 4 * 0x1p-24;
  EXPECT_TRUE(one(static_cast<float>(1 + bound), 1, 1).pass());
  EXPECT_FALSE(one(static_cast<float>(1 + 2 * bound), 1, 1).pass());
}

TEST(comparison, without_a_scale_only_zero_is_zero) {
  EXPECT_TRUE(one(0, 0, 0).pass());
  EXPECT_TRUE(one(-0.0f, 0, 0).pass());
  EXPECT_FALSE(one(1e-20f, 0, 0).pass());
}

TEST(comparison, nan_fails_against_a_number) {
  auto x = one(NAN, 1, 1);
  EXPECT_FALSE(x.pass());
  EXPECT_TRUE(std::isinf(x.max_error));
}

TEST(comparison, an_infinity_fails_against_a_number_even_with_an_infinite_scale_of_errors) {
  EXPECT_FALSE(one(inf, 1, 1e30).pass());
}

TEST(comparison, only_the_same_special_value_passes) {
  EXPECT_TRUE(one(inf, inf, 1).pass());
  EXPECT_TRUE(one(-inf, -inf, 1).pass());
  EXPECT_TRUE(one(NAN, std::numeric_limits<double>::quiet_NaN(), 1).pass());
  EXPECT_FALSE(one(-inf, inf, 1).pass());
  EXPECT_FALSE(one(3e38f, inf, 1).pass());
  EXPECT_FALSE(one(0, std::numeric_limits<double>::quiet_NaN(), 1).pass());
}

TEST(comparison, the_first_bad_element_is_told) {
  std::vector<float> got{1, 2, 3.5f, 9};
  std::vector<double> want{1, 2, 3, 4};
  std::vector<double> scale{1, 1, 1, 1};
  auto x = compare(got, want, scale, 4, "y");
  EXPECT_EQ(x.bad, 2u);
  EXPECT_EQ(x.first_bad, "y[2]: got 3.5, want 3 (bound 2.38e-07)");
  EXPECT_EQ(x.max_error, 5);
}

TEST(comparison, a_right_output_tells_its_largest_error_and_the_bound_there) {
  std::vector<float> got{1, 2.0000003f, 3};
  std::vector<double> want{1, 2, 3};
  std::vector<double> scale{1, 10, 1};
  auto x = compare(got, want, scale, 4, "y");
  EXPECT_TRUE(x.pass());
  EXPECT_GT(x.max_error, 0);
  EXPECT_NEAR(x.bound, 40 * 0x1p-24, 1e-12);
}

TEST(comparison, integers_must_be_equal) {
  std::vector<int32_t> got{1, 2, 3};
  std::vector<int32_t> want{1, 2, 4};
  auto x = compare(got, want, "index");
  EXPECT_EQ(x.bad, 1u);
  EXPECT_EQ(x.first_bad, "index[2]: got 3, want 4 (must be equal)");
}

TEST(comparison, a_bad_output_outweighs_a_larger_error_that_passes) {
  comparison good{100, 200, 0, ""};
  comparison bad{1, 0.5, 3, "y[0]"};
  EXPECT_EQ(worse_of(good, bad).max_error, 1);
  EXPECT_EQ(worse_of(bad, good).max_error, 1);
  EXPECT_EQ(worse_of(bad, good).bad, 3u);
}

} // namespace comparison_test
