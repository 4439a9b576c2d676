// Reports of ncu: golden/ncu_*.csv. Those named *_by_format.* were written from the format's
// description and from ncu's names; recorded ones say so in golden/README.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/ncu_command.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "tests/unit/profiler/golden.hpp"

using namespace kernelmill;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace ncu_test {

using m = metric;

TEST(NcuReport, HasOneKernelARowAndOurUnits) {
  auto x = read_ncu_report(golden("ncu_two_kernels_by_format.csv"));
  EXPECT_EQ(x.problem, ncu_problem::none) << x.words;
  ASSERT_EQ(x.kernels.size(), 2u);
  EXPECT_EQ(x.kernels[0].metrics.kernel, "sums(const float *, float *, int)");
  EXPECT_EQ(x.kernels[0].launch, 0u);
  EXPECT_EQ(x.kernels[1].launch, 1u);
  const auto& v = x.kernels[0].metrics.values;
  EXPECT_DOUBLE_EQ(*v[m::time], 1234.567) << "1,234,567 ns";
  EXPECT_DOUBLE_EQ(*v[m::dram_throughput], 87.5);
  EXPECT_DOUBLE_EQ(*v[m::registers], 40);
  EXPECT_DOUBLE_EQ(*v[m::dram_bytes], 4294967296);
  EXPECT_DOUBLE_EQ(*v[m::dynamic_shared], 2048) << "2.05 Kbyte/block would be 2,050";
}

TEST(NcuReport, WhatIsNoNumberIsMissing) {
  auto x = read_ncu_report(golden("ncu_two_kernels_by_format.csv"));
  ASSERT_EQ(x.kernels.size(), 2u);
  const auto& second = x.kernels[1];
  EXPECT_FALSE(second.metrics.values[m::dram_throughput]) << "nan";
  EXPECT_FALSE(second.metrics.values[m::tensor_pipe]) << "n/a";
  EXPECT_THAT(second.missing, Contains("dram_throughput"));
  EXPECT_THAT(second.missing, Contains("tensor_pipe"));
}

TEST(NcuReport, UnitsThatNcuChoseAreReckonedBack) {
  auto x = read_ncu_report("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n"
                           "\"\",\"\",\"us\",\"Mbyte\"\n"
                           "\"0\",\"k\",\"12.50\",\"3.25\"\n");
  ASSERT_EQ(x.kernels.size(), 1u);
  EXPECT_DOUBLE_EQ(*x.kernels[0].metrics.values[m::time], 12.5);
  EXPECT_DOUBLE_EQ(*x.kernels[0].metrics.values[m::dram_bytes], 3.25e6);
}

TEST(NcuReport, APermissionThatLacksIsNamed) {
  auto x = read_ncu_report(golden("ncu_no_permission_by_format.txt"));
  EXPECT_EQ(x.problem, ncu_problem::no_permission);
  EXPECT_THAT(x.words, HasSubstr("ERR_NVGPUCTRPERM"));
  EXPECT_TRUE(x.kernels.empty());
}

TEST(NcuReport, OtherProblemsAreNamedToo) {
  auto of = [](const std::string& text) { return read_ncu_report(text).problem; };
  EXPECT_EQ(of(""), ncu_problem::no_report);
  EXPECT_EQ(of("==WARNING== No kernels were profiled.\n"), ncu_problem::no_kernels);
  EXPECT_EQ(of("==ERROR== Failed to find metric x__y.sum\n"), ncu_problem::unknown_metric);
  EXPECT_EQ(of("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n"),
            ncu_problem::no_profiler);
  EXPECT_EQ(of("ERR_NVGPUCTRPERM, says the program\n"), ncu_problem::no_report);
}

TEST(NcuReport, RowsThatDoNotFitTheHeaderAreLeftOut) {
  auto x = read_ncu_report("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n"
                           "\"\",\"\",\"ns\"\n"
                           "\"0\",\"f<\"\"a,b\"\">\",\"1\"\n"
                           "\"1\",\"short\"\n"
                           "\"x\",\"no number\",\"1\"\n");
  ASSERT_EQ(x.kernels.size(), 1u);
  EXPECT_EQ(x.kernels[0].metrics.kernel, "f<\"a,b\">");
}

TEST(NcuCommand, LeavesTheClocksAloneAndAsksForBaseUnits) {
  auto x = ncu_command("/opt/ncu", {"a__b.sum", "c__d.avg"}, {"sums", 2, 1, "/tmp/log"});
  EXPECT_EQ(x[0], "/opt/ncu");
  for (const char* needed : {"--clock-control=none", "--csv", "--page=raw", "--print-units=base",
                             "--kernel-name=regex:sums", "--launch-skip=2", "--launch-count=1",
                             "--log-file=/tmp/log", "--metrics=a__b.sum,c__d.avg"})
    EXPECT_THAT(x, Contains(needed));
}

TEST(NcuCommand, QuickIsAPartOfFull) {
  auto quick = ncu_metrics(metric_pack::quick), full = ncu_metrics(metric_pack::full);
  EXPECT_GT(quick.size(), 8u);
  EXPECT_GT(full.size(), quick.size());
  for (const auto& x : quick) EXPECT_THAT(full, Contains(x));
}

TEST(NcuCommand, AsksForTheNamesThatThisNcuKnows) {
  auto known = read_metric_names("Device NVIDIA H200 (GH100)\n"
                                 "----- ----- -----\n"
                                 "Metric Name    Metric Type   Metric Unit\n"
                                 "sm__pipe_fp64_cycles_active   Counter  cycle  # of cycles\n"
                                 "dram__bytes     Counter byte\n");
  EXPECT_THAT(known, ElementsAre("dram__bytes", "sm__pipe_fp64_cycles_active"));
  auto asked = ncu_metrics(metric_pack::full, known);
  EXPECT_THAT(asked, Contains("dram__bytes.sum"));
  EXPECT_THAT(asked, Contains("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"));
  EXPECT_THAT(asked, Contains("launch__registers_per_thread"));
  EXPECT_THAT(asked, Not(Contains(StartsWith("smsp__"))));
}

TEST(Metrics, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const auto& row : metric_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_TRUE(row.is_of_tier0 || !row.ncu[0].empty()) << row.name << " has no source";
    EXPECT_TRUE(!row.is_in_quick || !row.ncu[0].empty()) << row.name;
  }
}

TEST(Metrics, AnInfinityIsNoValue) {
  metric_values x;
  EXPECT_TRUE(x.empty());
  x.set(m::time, 1.0 / 0.0);
  EXPECT_FALSE(x[m::time]);
  x.set(m::time, 0);
  EXPECT_EQ(x[m::time], 0);
}

} // namespace ncu_test
