// Exports of nsys, made here by the documented schema (made_database.hpp): no nsys runs on the
// hosts that we have.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/trace_database.hpp"
#include "tests/unit/profiler/made_database.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::HasSubstr;

namespace nsys_test {

std::string sum_and_scale() {
  return std::string{nsys_schema} + nsys_launch(1'000'000, 1'010'000, 1) +
         nsys_launch(1'020'000, 1'040'000, 1) + nsys_launch(1'050'000, 1'056'000, 3, 100) +
         nsys_launch(1'060'000, 1'090'000, 1, 528) +
         "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1030000,1045000,0,1,8,1,0,4096,1);"
         "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1046000,1048000,0,1,8,1,0,512);";
}

TEST(Nsys, KernelsHaveTheirTimesAndTheShapeOfTheLongestLaunch) {
  made_database file{sum_and_scale()};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->tool, trace_tool::nsys);
  EXPECT_EQ(x->version, "3.24.14");
  EXPECT_EQ(x->problem, trace_problem::none);
  EXPECT_EQ(x->launches, 4u);
  ASSERT_EQ(x->kernels.size(), 2u);
  const auto& sum = x->kernels[0];
  EXPECT_EQ(sum.kernel, "row_sum(float const*, float*, int)");
  EXPECT_EQ(sum.calls, 3u);
  ASSERT_TRUE(sum.times);
  EXPECT_EQ(sum.times->total_ns, 60'000u);
  EXPECT_EQ(sum.times->median_ns, 20'000u);
  EXPECT_EQ(sum.times->min_ns, 10'000u);
  EXPECT_EQ(sum.times->max_ns, 30'000u);
  EXPECT_EQ(sum.shape.grid, (extent{528, 1, 1}));
  EXPECT_EQ(sum.shape.block, (extent{256, 1, 1}));
  EXPECT_EQ(sum.shape.registers, 32u);
  EXPECT_EQ(sum.shape.static_shared, 1024u);
  EXPECT_EQ(sum.shape.dynamic_shared, 512u);
  EXPECT_EQ(sum.shape.shared, 1536u);
  EXPECT_EQ(x->kernels[1].kernel, "scale(float*, int)");
  EXPECT_THAT(x->notes, ElementsAre());
}

TEST(Nsys, TheMedianOfTwoLaunchesLiesBetweenThem) {
  made_database file{nsys_schema + nsys_launch(0, 10'000, 1) + nsys_launch(20'000, 50'000, 1)};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->kernels.at(0).times->median_ns, 20'000u);
}

TEST(Nsys, ADeviceTellsGapsCopiesAndTheirOverlap) {
  made_database file{sum_and_scale()};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  ASSERT_EQ(x->devices.size(), 1u);
  const auto& device = x->devices[0];
  EXPECT_EQ(device.launches, 4u);
  EXPECT_EQ(device.span_ns, 90'000u);
  EXPECT_EQ(device.kernel_ns, 66'000u);
  EXPECT_EQ(device.copy_ns, 17'000u);
  EXPECT_EQ(device.overlap_ns, 10'000u) << "the copy runs beside a kernel for two thirds";
  EXPECT_EQ(device.busy_ns, 73'000u);
  EXPECT_EQ(device.launch_gap_ns, 17'000u);
  EXPECT_EQ(device.launch_gaps, 4u);
  ASSERT_EQ(x->copies.size(), 2u);
  EXPECT_EQ(x->copies[0].kind, "Host-to-Device");
  EXPECT_EQ(x->copies[0].total_ns, 15'000u);
  EXPECT_EQ(x->copies[0].bytes, 4096u);
  EXPECT_EQ(x->copies[1].kind, "memset");
}

TEST(Nsys, ShortKernelsWithGapsAreLaunchBound) {
  std::string sql{nsys_schema};
  for (long i = 0; i < 100; ++i) sql += nsys_launch(i * 10'000, i * 10'000 + 2'000, 3);
  made_database file{sql};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  auto cards = read_cards(values_of(x->devices.at(0)));
  ASSERT_FALSE(cards.empty());
  EXPECT_EQ(cards[0].kind, "launch_overhead");
  EXPECT_GT(cards[0].confidence, 0.9);
  EXPECT_THAT(cards[0].evidence,
              ElementsAre(HasSubstr("200 us of a 992 us call"), HasSubstr("100 launches")));
}

TEST(Nsys, TimeThatTheHostTakesIsNoLaunchOverhead) {
  std::string sql{nsys_schema};
  for (long i = 0; i < 100; ++i) sql += nsys_launch(i * 10'000'000, i * 10'000'000 + 20'000, 3);
  made_database file{sql};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->devices.at(0).launch_gap_ns, 0u);
  EXPECT_TRUE(read_cards(values_of(x->devices.at(0))).empty());
}

TEST(Nsys, AKnownGpuGivesOccupancyAndWaves) {
  made_database file{nsys_schema + nsys_launch(0, 10'000, 1, 66)};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->gpu.name, "NVIDIA H200");
  EXPECT_EQ(x->gpu.architecture, "sm_90");
  auto values = values_of(x->kernels.at(0), x->gpu);
  EXPECT_EQ(values[metric::theoretical_occupancy], 100);
  // Eight blocks of 256 threads live on each of 132 multiprocessors.
  EXPECT_DOUBLE_EQ(values[metric::waves].value_or(0), 66 / (8 * 132.0));
  auto cards = read_cards(values);
  ASSERT_FALSE(cards.empty());
  EXPECT_EQ(cards[0].kind, "tail");
}

TEST(Nsys, GpusOfTwoKindsGiveNoOccupancy) {
  made_database file{nsys_schema + nsys_launch(0, 10'000, 1)};
  file.run("INSERT INTO TARGET_INFO_GPU VALUES (0, 1, 'NVIDIA L4', 58, 8, 9)");
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->gpu.architecture.empty());
  EXPECT_FALSE(values_of(x->kernels.at(0), x->gpu)[metric::waves]);
}

TEST(Nsys, TwoGpusAreTwoTimelines) {
  made_database file{nsys_schema + nsys_launch(0, 10'000, 1) +
                     nsys_launch(5'000, 15'000, 1, 264, 1)};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  ASSERT_EQ(x->devices.size(), 2u);
  EXPECT_EQ(x->devices[0].span_ns, 10'000u);
  EXPECT_EQ(x->devices[1].device, 1);
}

// The least that versions have had in common.
TEST(Nsys, AnOldExportWithoutShapesIsRead) {
  made_database file{"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
                     "INSERT INTO StringIds VALUES (2, 'scale');"
                     "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT);"
                     "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 2)"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->kernels.at(0).kernel, "scale");
  EXPECT_EQ(x->kernels[0].times->total_ns, 20u);
  EXPECT_FALSE(x->kernels[0].shape.grid);
  EXPECT_FALSE(x->kernels[0].shape.registers);
}

TEST(Nsys, ATraceWithoutKernelsIsAProblemOfTheReport) {
  made_database file{"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->problem, trace_problem::no_kernels);
  EXPECT_THAT(x->words, HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL"));
}

TEST(Nsys, AnEmptyTableIsAProblemOfTheReport) {
  made_database file{nsys_schema};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->problem, trace_problem::no_kernels);
}

TEST(Nsys, GraphsThatWereTracedAsAWholeAreNamed) {
  made_database file{nsys_schema + nsys_launch(0, 10, 1) +
                     "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT)"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_THAT(x->notes, ElementsAre(HasSubstr("--cuda-graph-trace=node")));
}

TEST(Nsys, LaunchesWithoutTimesAreCountedAndLeftOut) {
  made_database file{nsys_schema + nsys_launch(0, 0, 1) + nsys_launch(50, 40, 1) +
                     nsys_launch(0, 9'000'000'000'000'000, 1) + nsys_launch(100, 300, 1)};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->launches, 1u);
  EXPECT_EQ(x->kernels.at(0).times->total_ns, 200u);
  EXPECT_THAT(x->notes, ElementsAre(HasSubstr("3 launches or copies have no times")));
}

// SQLite lets each cell hold any type.
TEST(Nsys, CellsOfAnotherTypeAreNothing) {
  made_database file{
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value);"
      "INSERT INTO StringIds VALUES (1, x'00ff'), (2, 17);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, demangledName, gridX, gridY,"
      " gridZ, registersPerThread);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('now', 3.5, 0, 1, 1, 1, 1, 1),"
      " (100, 200, 'first', 1, -1, 1, 1, 'many'), (200, 300, 0, 2, 1, NULL, 1, "
      "9223372036854775807),"
      " (300, 400, 0, 'row_sum', 1, 1, 1, x'01')"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->launches, 3u);
  for (const auto& kernel : x->kernels) {
    EXPECT_FALSE(kernel.shape.registers);
    EXPECT_TRUE(kernel.kernel.starts_with('(')) << kernel.kernel;
  }
  EXPECT_THAT(x->notes, ElementsAre(HasSubstr("1 launches or copies have no times")));
}

TEST(Nsys, AHugeNameIsCut) {
  made_database file{nsys_schema + nsys_launch(0, 10, 1) +
                     "UPDATE StringIds SET value = printf('%.*c', 1000000, 'k') WHERE id = 1"};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->kernels.at(0).kernel, std::string(512, 'k'));
}

TEST(Nsys, ANameOfManyMegabytesIsRefused) {
  made_database file{nsys_schema + nsys_launch(0, 10, 1) +
                     "UPDATE StringIds SET value = printf('%.*c', 30000000, 'k') WHERE id = 1"};
  auto x = read_trace_database(file.path());
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "bad_report");
  EXPECT_THAT(x.error().message, HasSubstr(file.path()));
}

TEST(Nsys, TooManyKernelsAreToldTogether) {
  std::string sql{nsys_schema};
  sql += "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 9009) "
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 100, i * 100 + 50, 0, 1, 7, 1, 0, i, i,"
         " 0, 0, 0, 32, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0, 1 FROM n;";
  made_database file{sql};
  auto x = read_trace_database(file.path());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->launches, 9000u);
  EXPECT_EQ(x->kernels.size(), 256u);
  EXPECT_EQ(x->kernels[0].kernel, "(others)");
  EXPECT_THAT(x->notes, ElementsAre(HasSubstr("more kernels took less time")));
}

} // namespace nsys_test
