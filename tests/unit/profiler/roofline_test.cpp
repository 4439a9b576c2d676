#include "gpu/profiler/roofline.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/spill_remark.hpp"

using namespace kernelmill;
using testing::AllOf;
using testing::HasSubstr;

namespace roofline_test {

using m = metric;

TEST(Roofline, ComparesWhatWasDoneWithTheDevice) {
  auto x = position_of({2e9, 8e9, 4e-3}, {60e12, 3e12});
  EXPECT_DOUBLE_EQ(*x.intensity, 0.25);
  EXPECT_DOUBLE_EQ(*x.flops, 5e11);
  EXPECT_DOUBLE_EQ(*x.bandwidth, 2e12);
  EXPECT_DOUBLE_EQ(*x.roof.ridge(), 20);
  EXPECT_DOUBLE_EQ(*x.attainable(), 7.5e11);
  EXPECT_TRUE(*x.is_below_slope());
  EXPECT_THAT(position_text(x),
              AllOf(HasSubstr("0.25 flop/B (ridge 20)"), HasSubstr("2 TB/s of 3 TB/s"),
                    HasSubstr("67 % of the roof")));
}

TEST(Roofline, WhatIsNotKnownIsMissingAndNotZero) {
  auto x = position_of({std::nullopt, 8e9, 4e-3}, {});
  EXPECT_FALSE(x.intensity);
  EXPECT_FALSE(x.flops);
  EXPECT_FALSE(x.roof.ridge());
  EXPECT_FALSE(x.attainable());
  EXPECT_FALSE(x.is_below_slope());
  auto list = quantities_of(x);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].name, "achieved_bandwidth");
  EXPECT_EQ(list[0].unit, "B/s");
  EXPECT_TRUE(position_text({}).empty());
  EXPECT_FALSE(position_of({1e9, 0.0, 1}, {}).intensity) << "no division by what is zero";
}

TEST(Roofline, QuantitiesComeBackByTheirNames) {
  auto x = position_of({2e9, 8e9, 4e-3}, {60e12, 3e12});
  roofline_position back;
  for (const auto& one : quantities_of(x)) EXPECT_TRUE(set_quantity(back, one.name, one.value));
  EXPECT_EQ(position_text(back), position_text(x));
  EXPECT_FALSE(set_quantity(back, "call_time", 1));
}

metric_values counters(const std::map<metric, double>& list) {
  metric_values result;
  for (auto [which, value] : list) result.set(which, value);
  return result;
}

TEST(Roofline, OfAKernelCountsSinglePrecisionWhereNothingElseComputes) {
  const std::map<metric, double> list = {
      {m::time, 100},       {m::dram_bytes, 4e8}, {m::fp32_adds, 1e6}, {m::fp32_muls, 2e6},
      {m::fp32_fmas, 10e6}, {m::tensor_pipe, 0},  {m::fp64_pipe, 0}};
  auto x = counted_work(counters(list));
  EXPECT_DOUBLE_EQ(*x.flops, 23e6);
  EXPECT_DOUBLE_EQ(*x.bytes, 4e8);
  EXPECT_DOUBLE_EQ(*x.seconds, 1e-4);
  auto tensor = list;
  tensor[m::tensor_pipe] = 40;
  EXPECT_FALSE(counted_work(counters(tensor)).flops);
  auto unknown = list;
  unknown.erase(m::fp64_pipe);
  EXPECT_FALSE(counted_work(counters(unknown)).flops);
}

TEST(SpillRemark, ComesBackAsItWas) {
  auto x = read_spill_remark(spill_remark({"ns::f<int>(float const*): odd", 12}));
  ASSERT_TRUE(x);
  EXPECT_EQ(x->kernel, "ns::f<int>(float const*): odd");
  EXPECT_EQ(x->instructions, 12u);
  EXPECT_FALSE(read_spill_remark("spill in f: many instructions of local memory"));
  EXPECT_FALSE(read_spill_remark("unused variable"));
}

} // namespace roofline_test
