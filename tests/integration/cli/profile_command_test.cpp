// `profile read`, `profile command` and `inspect`, as users call them.

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string golden(const std::string& name) {
  return source_file("tests/unit/profiler/golden/" + name);
}

TEST(profile_read, of_ncus_report_names_the_limit_the_numbers_and_one_thing_to_try) {
  auto x = kernelmill({"profile", "read", golden("ncu_two_kernels_by_format.csv")});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("sums(const float *, float *, int)  1235 us"),
                           HasSubstr("limited by memory_bandwidth"), HasSubstr("88 %"),
                           HasSubstr("likely causes: "), HasSubstr("try: ")));
}

TEST(profile_read, has_metrics_and_cards_as_one_document) {
  auto x = kernelmill({"profile", "read", golden("ncu_two_kernels_by_format.csv"), "--json"});
  auto d = x.document();
  ASSERT_TRUE(d.is_object()) << x.err;
  EXPECT_EQ(d["tool"], "ncu");
  ASSERT_EQ(d["kernels"].size(), 2u);
  EXPECT_EQ(d["kernels"][0]["metrics"]["registers"], 40);
  EXPECT_EQ(d["kernels"][0]["cards"][0]["bottleneck"], "memory_bandwidth");
  EXPECT_FALSE(d["kernels"][1]["metrics"].contains("dram_throughput")) << "NaN is missing";
  EXPECT_EQ(d["kernels"][1]["cards"][0]["bottleneck"], "tail");
}

TEST(profile_read, says_what_to_do_where_counters_may_not_be_read) {
  auto x = kernelmill({"profile", "read", golden("ncu_no_permission_by_format.txt")});
  EXPECT_EQ(x.code, 5);
  EXPECT_EQ(x.out, "");
  EXPECT_THAT(x.err, AllOf(HasSubstr("no_permission"), HasSubstr("NVreg_RestrictProfiling")));
}

TEST(profile_read, of_a_sanitizers_report_lists_findings) {
  auto x = kernelmill({"profile", "read", golden("racecheck_by_format.txt")});
  EXPECT_EQ(x.code, 5);
  EXPECT_THAT(x.out, AllOf(HasSubstr("error race: "), HasSubstr("reduce.cu:28"),
                           HasSubstr("and void reduce<(int)256>(float *) at reduce.cu:30")));
  auto d = kernelmill({"profile", "read", golden("memcheck_by_format.txt"), "--json"}).document();
  EXPECT_EQ(d["findings"][0]["family"], "out_of_bounds");
  EXPECT_EQ(d["findings"][0]["at"]["line"], 14);
}

TEST(profile_read, names_a_file_that_is_not_there) {
  auto x = kernelmill({"profile", "read", "no/such.csv", "--json"});
  EXPECT_NE(x.code, 0);
  EXPECT_EQ(x.fault()["category"], "missing_file");
}

TEST(profile_command, leaves_clocks_alone_and_can_be_pasted) {
  auto x = kernelmill({"profile", "command", "--pack", "quick", "--kernel", "sums|total"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out,
              AllOf(HasSubstr("--clock-control=none"),
                    HasSubstr("'--kernel-name=regex:sums|total'"), HasSubstr("dram__throughput")));
}

bool has_nvcc() {
  return ::access("/usr/local/cuda/bin/nvcc", X_OK) == 0;
}

constexpr const char* doubler =
    "#include \"half.h\"\n"
    "extern \"C\" __global__ void twice(const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = x[i] * 2.5f;\n"
    "}\n";

TEST(inspect, shows_source_beside_ptx_without_a_gpu) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  std::string source{doubler};
  source.erase(0, source.find('\n') + 1);
  auto x = kernelmill({"inspect", "-", "--arch", "sm_90", "--json"}, {source, {}, {}});
  auto d = x.document();
  ASSERT_TRUE(d.is_object()) << x.err;
  EXPECT_EQ(d["compiled"], true) << d;
  EXPECT_EQ(d["build"]["kernels"][0]["name"], "twice");
  EXPECT_GT(d["build"]["kernels"][0]["registers"], 0);
  EXPECT_EQ(d["build"]["kernels"][0]["occupancy"], 1);
  EXPECT_GT(d["ptx"][0]["mix"]["global memory"], 0);
  std::string of_line_4;
  for (const auto& row : d["triview"][0]["rows"])
    if (row["line"] == 4)
      for (const auto& text : row["ptx"]) of_line_4 += text.get<std::string>() + "\n";
  EXPECT_THAT(of_line_4, AllOf(HasSubstr("ld.global"), HasSubstr("mul."), HasSubstr("st.global")));
  // Without a disassembler it says what is missing.
  EXPECT_TRUE(!d["sass"].empty() || d["missing"][0].get<std::string>().starts_with("SASS: ")) << d;
}

TEST(inspect, of_what_does_not_compile_shows_the_compilers_words) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto x = kernelmill({"inspect", "-", "--arch", "sm_90"}, {doubler, {}, {}});
  EXPECT_EQ(x.code, 0);
  EXPECT_THAT(x.out,
              AllOf(HasSubstr("half.h"), HasSubstr("not compiled"), Not(HasSubstr("/build/"))));
}

} // namespace
} // namespace kernelmill::test
