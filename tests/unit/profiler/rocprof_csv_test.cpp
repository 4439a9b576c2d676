// CSV of rocprofv3. Headers and the order of columns are those of rocprofiler-sdk's documentation
// (source/docs/data): 0.5 and 0.6 (ROCm 6.2 to 6.4), 1.0 (ROCm 7.0), and `rocpd convert`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/rocprof_csv.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::HasSubstr;

namespace rocprof_csv_test {

const std::string old_trace =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\","
    "\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\","
    "\"Private_Segment_Size\",\"Group_Segment_Size\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\","
    "\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
    "\"KERNEL_DISPATCH\",8,2,252734,2,18,\"norm(int, double, double*)\",33,4484384527705139,"
    "4484384528106260,0,1024,128,1,1,16384,1,1\n"
    "\"KERNEL_DISPATCH\",8,2,252734,3,17,\"second(int)\",36,4484384528106260,4484384528109780,0,"
    "1024,128,1,1,128,1,1\n";

const std::string new_header =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\","
    "\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\","
    "\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\","
    "\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n";
const std::string new_row =
    "\"KERNEL_DISPATCH\",\"Agent 7\",17,26,847809,101,49,\"void add<float>(float*, int)\",101,"
    "1551401624448706,1551401624459226,2048,0,8,0,16,64,1,1,1024,1024,1\n";

const std::string counter_header =
    "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\","
    "\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\","
    "\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\","
    "\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n";

std::string counter_row(int dispatch, const std::string& counter, const std::string& value) {
  return std::to_string(dispatch) + "," + std::to_string(dispatch) +
         ",\"Agent 1\",1,15606,15606,1048576,17,\"void add<float>(float*, int)\",64,0,0,8,0,16,\"" +
         counter + "\"," + value + ",3200098838431081,3200098838483232\n";
}

TEST(RocprofTrace, TheOlderColumnsAreRead) {
  ASSERT_TRUE(is_rocprof_csv(old_trace));
  auto x = read_rocprof_csv(old_trace);
  EXPECT_EQ(x.tool, trace_tool::rocprofv3);
  EXPECT_EQ(x.problem, trace_problem::none);
  ASSERT_EQ(x.kernels.size(), 2u);
  EXPECT_EQ(x.kernels[0].kernel, "norm(int, double, double*)");
  EXPECT_EQ(x.kernels[0].times->total_ns, 401'121u);
  EXPECT_EQ(x.kernels[0].shape.grid, (extent{128, 1, 1}));
  EXPECT_EQ(x.kernels[0].shape.block, (extent{128, 1, 1}));
  EXPECT_EQ(x.kernels[0].shape.shared, 1024u);
  EXPECT_FALSE(x.kernels[0].shape.registers);
  EXPECT_EQ(x.devices.at(0).device, 8);
  EXPECT_EQ(x.devices[0].span_ns, 404'641u);
  EXPECT_EQ(x.devices[0].launch_gaps, 0u) << "the second begins when the first ends";
}

TEST(RocprofTrace, TheNewerColumnsAreRead) {
  auto x = read_rocprof_csv(new_header + new_row + "\r\n");
  ASSERT_EQ(x.kernels.size(), 1u);
  EXPECT_EQ(x.kernels[0].kernel, "void add<float>(float*, int)");
  EXPECT_EQ(x.kernels[0].times->median_ns, 10'520u);
  EXPECT_EQ(x.kernels[0].shape.grid, (extent{16, 1024, 1}));
  EXPECT_EQ(x.kernels[0].shape.registers, 8u);
  EXPECT_EQ(x.kernels[0].shape.shared, 2048u);
  EXPECT_EQ(x.devices.at(0).device, 7);
  EXPECT_THAT(x.notes, ElementsAre());
}

TEST(RocprofTrace, NamesOfColumnsMayHaveAnyCaseAndOrder) {
  auto x = read_rocprof_csv(
      "\"Guid\",\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Dispatch_Id\",\"KERNEL_NAME\","
      "\"end_timestamp\",\"Start_Timestamp\",\"Lds_Block_Size\",\"Vgpr_Count\"\n"
      "\"0000-1\",\"KERNEL_DISPATCH\",\"Agent 4\",1,1,\"f\",300,100,8456,16\n");
  EXPECT_EQ(x.kernels.at(0).times->total_ns, 200u);
  EXPECT_EQ(x.kernels[0].shape.shared, 8456u);
  EXPECT_EQ(x.kernels[0].shape.registers, 16u);
  EXPECT_FALSE(x.kernels[0].shape.grid);
}

TEST(RocprofTrace, ACutOrBrokenRowIsCountedAndLeftOut) {
  auto x = read_rocprof_csv(new_header + new_row + new_row.substr(0, 90) + "\n");
  EXPECT_EQ(x.launches, 1u);
  EXPECT_THAT(x.notes, ElementsAre(HasSubstr("1 rows were left out")));
}

TEST(RocprofTrace, AHeaderAloneIsAProblem) {
  auto x = read_rocprof_csv(new_header);
  EXPECT_EQ(x.problem, trace_problem::no_kernels);
  EXPECT_FALSE(x.words.empty());
}

TEST(RocprofTrace, OtherTextsAreNone) {
  EXPECT_FALSE(is_rocprof_csv(""));
  EXPECT_FALSE(is_rocprof_csv("a,b,c\n1,2,3\n"));
  EXPECT_FALSE(is_rocprof_csv("\"ID\",\"Kernel Name\"\n"));
  EXPECT_EQ(read_rocprof_csv("a,b,c\n1,2,3\n").problem, trace_problem::no_kernels);
}

TEST(RocprofTrace, ImpossibleNumbersAreNothing) {
  auto x = read_rocprof_csv(
      "Agent_Id,Queue_Id,Kernel_Name,Start_Timestamp,End_Timestamp,Workgroup_Size_X,"
      "Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z,VGPR_Count\n"
      "99999999999999999999,1,f,1,5,0,1,1,10,1,1,-3\n"
      "1,1,f,99999999999999999999,5,64,1,1,10,1,1,3\n");
  EXPECT_EQ(x.launches, 1u);
  EXPECT_FALSE(x.kernels.at(0).shape.grid) << "a workgroup of nothing";
  EXPECT_FALSE(x.kernels[0].shape.registers);
}

TEST(RocprofCounters, ADispatchWithTwoCountersIsOneLaunch) {
  auto text = counter_header + counter_row(1, "SQ_WAVES", "16384.000000") +
              counter_row(1, "GRBM_COUNT", "52151.5") + counter_row(2, "SQ_WAVES", "16380") +
              counter_row(2, "GRBM_COUNT", "n/a");
  ASSERT_TRUE(is_rocprof_csv(text));
  auto x = read_rocprof_csv(text);
  ASSERT_EQ(x.kernels.size(), 1u);
  const auto& add = x.kernels[0];
  EXPECT_EQ(add.calls, 2u);
  EXPECT_EQ(add.times->min_ns, 52'151u);
  EXPECT_EQ(add.shape.grid, (extent{16384, 1, 1}));
  ASSERT_EQ(add.counters.size(), 2u);
  EXPECT_EQ(add.counters[0].name, "GRBM_COUNT");
  EXPECT_EQ(add.counters[0].dispatches, 1u);
  EXPECT_EQ(add.counters[1].name, "SQ_WAVES");
  EXPECT_DOUBLE_EQ(add.counters[1].mean, 16382);
  EXPECT_DOUBLE_EQ(add.counters[1].min, 16380);
  EXPECT_DOUBLE_EQ(add.counters[1].max, 16384);
  EXPECT_TRUE(x.devices.empty());
  EXPECT_THAT(x.notes, ElementsAre(HasSubstr("one by one"), HasSubstr("1 rows were left out")));
}

// rocprofiler-sdk 0.4 had no times beside counters.
TEST(RocprofCounters, CountersWithoutTimesAreRead) {
  auto x = read_rocprof_csv("\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Grid_Size\","
                            "\"Kernel_Name\",\"Workgroup_Size\",\"Counter_Name\","
                            "\"Counter_Value\"\n1,1,1,1024,\"f\",64,\"SQ_WAVES\",16\n");
  EXPECT_EQ(x.problem, trace_problem::none);
  EXPECT_EQ(x.kernels.at(0).calls, 1u);
  EXPECT_FALSE(x.kernels[0].times);
  EXPECT_EQ(x.kernels[0].shape.grid, (extent{16, 1, 1}));
  EXPECT_TRUE(x.devices.empty());
}

} // namespace rocprof_csv_test
