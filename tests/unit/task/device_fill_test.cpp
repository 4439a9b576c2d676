#include <gtest/gtest.h>

#include "gpu/task/device_fill.hpp"
#include "gpu/task/distribution.hpp"

using namespace kernelmill;

namespace device_fill_test {

TEST(device_fill, what_needs_a_whole_row_a_gpu_does_not_make) {
  for (auto type : {dtype::f32, dtype::i32})
    for (auto* name : {"distinct", "masked", "permutation", "nothing", ""})
      EXPECT_FALSE(find_device_fill(name, type)) << name;
}

TEST(device_fill, a_distribution_belongs_to_one_type) {
  EXPECT_TRUE(find_device_fill("index", dtype::i32));
  EXPECT_FALSE(find_device_fill("index", dtype::f32));
  for (auto* name : {"normal", "large", "tiny", "uniform", "positive", "signs", "few_outliers"}) {
    EXPECT_TRUE(find_device_fill(name, dtype::f32)) << name;
    EXPECT_FALSE(find_device_fill(name, dtype::i32)) << name;
  }
}

TEST(device_fill, normals_differ_by_their_scale_only) {
  auto normal = find_device_fill("normal", dtype::f32);
  auto large = find_device_fill("large", dtype::f32);
  ASSERT_TRUE(normal && large);
  EXPECT_EQ(normal->kind, large->kind);
  EXPECT_EQ(normal->scale, 1.0f);
  EXPECT_EQ(large->scale, 1e3f);
}

TEST(device_fill, a_gpu_makes_only_what_the_host_can_make_too) {
  for (auto type : {dtype::f32, dtype::i32}) {
    EXPECT_FALSE(device_distributions(type).empty());
    for (const auto& name : device_distributions(type))
      EXPECT_TRUE(is_distribution(name, type)) << name;
  }
}

} // namespace device_fill_test
