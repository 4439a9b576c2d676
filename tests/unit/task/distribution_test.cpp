#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "gpu/task/distribution.hpp"

using namespace kernelmill;

namespace task_distribution_test {

content_key key_of(uint64_t call) {
  return derive_key(secret_seed{1, 2, 3}, "case", call, "x");
}

std::vector<float> floats(std::string_view name, size_t rows, size_t cols, uint64_t call = 0) {
  std::vector<float> x(rows * cols, NAN);
  fill(std::span{x}, name, cols, key_of(call));
  return x;
}

std::vector<int32_t> ints(std::string_view name, size_t rows, size_t cols, int64_t low,
                          int64_t high) {
  std::vector<int32_t> x(rows * cols, -77);
  fill(std::span{x}, name, cols, low, high, key_of(0));
  return x;
}

double mean(const std::vector<float>& x) {
  double sum = 0;
  for (float value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

TEST(distribution, every_name_fills_every_element) {
  for (const auto& name : distributions(dtype::f32))
    for (float value : floats(name, 7, 13)) EXPECT_FALSE(std::isnan(value)) << name;
  for (const auto& name : distributions(dtype::i32))
    for (int32_t value : ints(name, 7, 13, 0, 5)) EXPECT_NE(value, -77) << name;
}

TEST(distribution, normal_has_its_moments) {
  auto x = floats("normal", 100, 1000);
  double square = 0;
  for (float value : x) square += double{value} * value;
  EXPECT_NEAR(mean(x), 0, 0.02);
  EXPECT_NEAR(square / 1e5, 1, 0.02);
  EXPECT_LE(*std::max_element(x.begin(), x.end()), 3.0f);
}

TEST(distribution, the_same_key_gives_the_same_bytes) {
  EXPECT_EQ(floats("normal", 3, 100, 4), floats("normal", 3, 100, 4));
}

TEST(distribution, another_call_gives_other_bytes) {
  auto a = floats("normal", 1, 1000, 0);
  auto b = floats("normal", 1, 1000, 1);
  size_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
  EXPECT_LT(same, 3u);
}

TEST(distribution, keys_keep_case_and_argument_apart) {
  secret_seed seed{};
  auto words = [&](std::string_view c, uint64_t call, std::string_view a) {
    return derive_key(seed, c, call, a).words[0];
  };
  std::set<uint64_t> seen{words("a1", 1, "x"), words("a", 11, "x"), words("a", 1, "x"),
                          words("a", 1, "y"), words("", 1, "ax")};
  EXPECT_EQ(seen.size(), 5u);
}

TEST(distribution, normal_uses_the_whole_mantissa) {
  auto x = floats("normal", 1, 1000);
  size_t exact_in_half = 0;
  for (float value : x) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    exact_in_half += (bits & 0x1fffu) == 0;
  }
  EXPECT_LT(exact_in_half, 10u);
}

TEST(distribution, sparse_has_one_value_a_row) {
  auto x = floats("sparse", 20, 33);
  for (size_t r = 0; r < 20; ++r)
    EXPECT_EQ(std::count(x.begin() + r * 33, x.begin() + (r + 1) * 33, 0.0f), 32) << r;
}

TEST(distribution, distinct_keeps_neighbours_apart) {
  auto x = floats("distinct", 2, 1000);
  std::sort(x.begin(), x.begin() + 1000);
  for (size_t i = 1; i < 1000; ++i) EXPECT_GT(x[i] - x[i - 1], 1.0f / 2000) << i;
}

TEST(distribution, masked_never_masks_a_whole_row) {
  auto x = floats("masked", 200, 2);
  bool any = false;
  for (size_t r = 0; r < 200; ++r) {
    EXPECT_TRUE(std::isfinite(x[2 * r]) || std::isfinite(x[2 * r + 1]));
    any = any || !std::isfinite(x[2 * r]);
  }
  EXPECT_TRUE(any);
}

TEST(distribution, outlier_has_at_least_one_in_a_small_tensor) {
  size_t large = 0;
  for (uint64_t call = 0; call < 20; ++call)
    for (float value : floats("outlier", 1, 4, call)) large += std::fabs(value) > 100;
  EXPECT_GT(large, 15u);
}

size_t count_of(const std::vector<float>& x, bool (*is)(float)) {
  return static_cast<size_t>(std::count_if(x.begin(), x.end(), is));
}

TEST(distribution, what_is_few_is_one_to_three_of_all) {
  for (uint64_t call = 0; call < 50; ++call) {
    auto large =
        count_of(floats("few_outliers", 64, 512, call), [](float x) { return std::fabs(x) > 50; });
    EXPECT_GE(large, 1u);
    EXPECT_LE(large, 3u);
    EXPECT_LE(count_of(floats("few_negatives", 64, 512, call), [](float x) { return x < 0; }), 3u);
  }
}

TEST(distribution, unequal_rows_differ_in_scale) {
  auto x = floats("unequal_rows", 64, 256);
  float least = 1e9f, most = 0;
  for (size_t row = 0; row < 64; ++row) {
    float largest = 0;
    for (size_t i = 0; i < 256; ++i) largest = std::max(largest, std::fabs(x[row * 256 + i]));
    least = std::min(least, largest);
    most = std::max(most, largest);
  }
  EXPECT_GT(most / least, 100);
}

TEST(distribution, index_stays_in_its_range_and_reaches_its_ends) {
  auto x = ints("index", 1, 1000, -2, 3);
  EXPECT_EQ(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_EQ(*std::max_element(x.begin(), x.end()), 2);
  for (int32_t value : ints("index", 1, 1000, INT32_MIN, int64_t{INT32_MAX} + 1)) (void)value;
}

TEST(distribution, permutation_holds_each_number_once_a_row) {
  auto x = ints("permutation", 3, 50, 0, 1);
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(std::set<int32_t>(x.begin() + r * 50, x.begin() + (r + 1) * 50).size(), 50u);
}

} // namespace task_distribution_test
