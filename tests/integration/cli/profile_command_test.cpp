// `profile read`, `profile command` and `inspect`, as users call them.

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {
namespace profile_command_test {

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

std::string trace(const std::string& name) {
  return source_file("tests/fuzz/corpus/profilers/" + name);
}

TEST(profile_read, of_nsys_has_times_of_kernels_and_where_the_gpu_was_idle) {
  auto x = kernelmill({"profile", "read", trace("nsys_by_format.sqlite")});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("row_sum(float const*, float*, int)      2      5.00"),
                           HasSubstr("idle between launches: 4.00 us (36 %)"),
                           HasSubstr("50 % of it beside a kernel"), HasSubstr("launch_overhead"),
                           HasSubstr("try: ")));
}

TEST(profile_read, has_traces_as_one_document) {
  auto d = kernelmill({"profile", "read", trace("rocpd_by_format.db"), "--json"}).document();
  ASSERT_TRUE(d.is_object());
  EXPECT_EQ(d["tool"], "rocpd");
  EXPECT_EQ(d["launches"], 3);
  EXPECT_EQ(d["kernels"][0]["times"]["total_ns"], 26621);
  EXPECT_TRUE(d["kernels"][0]["registers"].is_null()) << "what is not told is missing";
  EXPECT_EQ(d["kernels"][1]["counters"][0]["name"], "SQ_WAVES");
  d = kernelmill({"profile", "read", trace("rocprofv3_trace_by_format.csv"), "--json"}).document();
  EXPECT_EQ(d["tool"], "rocprofv3");
  EXPECT_EQ(d["devices"][0]["launch_gap_ns"], 774);
  d = kernelmill({"profile", "read", trace("rocm_smi_by_format.json"), "--json"}).document();
  EXPECT_EQ(d["tool"], "rocm-smi");
  EXPECT_EQ(d["gpus"][0]["core_mhz"], 300);
  EXPECT_TRUE(d["gpus"][0]["junction_celsius"].is_null());
}

TEST(profile_read, says_what_it_expected_of_a_database_of_another_program) {
  auto x = kernelmill({"profile", "read", trace("../store/nothing"), "--json"});
  EXPECT_EQ(x.fault()["category"], "missing_file");
  std::string path = testing::TempDir() + "kernelmill-no-trace.sqlite";
  std::ofstream{path} << "SQLite format 3" << std::string(2000, '\0');
  x = kernelmill({"profile", "read", path, "--json"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "bad_report");
  EXPECT_THAT(x.fault().dump(), AllOf(HasSubstr(path), HasSubstr("nsys export --type sqlite")));
  std::ofstream{path} << std::string(2000, '\0'); // as nsys' own files, which are binary
  x = kernelmill({"profile", "read", path, "--json"});
  EXPECT_EQ(x.fault()["category"], "bad_report");
  EXPECT_THAT(x.fault().dump(), HasSubstr("nsys-rep"));
  ::unlink(path.c_str());
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

// -- HIP ------------------------------------------------------------------------------------------

constexpr const char* hip_doubler = "__global__ void twice(const float* x, float* y, int n) {\n"
                                    "  __shared__ float part[256];\n"
                                    "  int i = blockIdx.x * 256 + threadIdx.x;\n"
                                    "  part[threadIdx.x] = i < n ? x[i] : 0;\n"
                                    "  __syncthreads();\n"
                                    "  y[i] = part[255 - threadIdx.x] * 2.5f;\n"
                                    "}\n"
                                    "extern \"C\" void solve(const float* x, float* y, int n) {\n"
                                    "  twice<<<n / 256, 256>>>(x, y, n);\n"
                                    "}\n";

// Asked of the program, so that this test needs no library of it.
bool has_hipcc() {
  auto x = kernelmill({"inspect", write_file("probe.hip", hip_doubler), "--json"});
  auto fault = x.fault();
  return !fault.is_object() || fault["category"] != "toolchain_missing";
}

TEST(inspect_hip, shows_source_beside_gcn_without_a_gpu) {
  if (!has_hipcc()) GTEST_SKIP() << "no hipcc on this machine";
  for (auto* name : {"kernel.hip", "kernel.hip.cpp"}) {
    auto x = kernelmill({"inspect", write_file(name, hip_doubler), "--arch", "gfx90a", "--json"});
    auto d = x.document();
    ASSERT_TRUE(d.is_object()) << x.err;
    ASSERT_EQ(d["compiled"], true) << d;
    EXPECT_EQ(d["architecture"], "gfx90a");
    auto kernel = d["build"]["kernels"][0];
    EXPECT_EQ(kernel["name"], "twice(float const*, float*, int)");
    EXPECT_GT(kernel["vgprs"], 0);
    EXPECT_GT(kernel["sgprs"], 0);
    EXPECT_EQ(kernel["lds_bytes"], 1024);
    EXPECT_EQ(kernel["vgpr_spills"], 0);
    EXPECT_EQ(kernel["mix"]["shared memory"], 2);
    EXPECT_EQ(d["gcn"][0]["name"], kernel["name"]);
    EXPECT_FALSE(d.contains("ptx"));
    std::string of_line_6;
    for (const auto& row : d["triview"][0]["rows"])
      if (row["line"] == 6)
        for (const auto& text : row["gcn"]) of_line_6 += text.get<std::string>() + "\n";
    EXPECT_THAT(of_line_6, AllOf(HasSubstr("ds_read"), HasSubstr("global_store")));
  }
}

TEST(inspect_hip, has_text_for_people) {
  if (!has_hipcc()) GTEST_SKIP() << "no hipcc on this machine";
  auto x = kernelmill({"inspect", write_file("kernel.hip", hip_doubler), "--arch", "gfx90a"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("VGPRS"), HasSubstr("LDS"), HasSubstr("2 shared memory"),
                           HasSubstr("    4  part[threadIdx.x] = i < n ? x[i] : 0;"),
                           HasSubstr("s_barrier")));
}

TEST(inspect_hip, counts_what_the_code_does_and_tells_what_the_build_does) {
  if (!has_hipcc()) GTEST_SKIP() << "no hipcc on this machine";
  auto x =
      kernelmill({"inspect", write_file("kernel.hip", hip_doubler), "--arch", "gfx90a", "--json"});
  auto d = x.document();
  ASSERT_EQ(d["quality"].size(), 1u) << x.err;
  auto quality = d["quality"][0];
  EXPECT_EQ(quality["listing"], "gcn");
  EXPECT_EQ(quality["spills"]["vgprs"], 0);
  EXPECT_EQ(quality["takes_doubles"], false);
  for (const auto& one : quality["kinds"])
    EXPECT_EQ(one["instructions"], one["what"] == "barriers" ? 1 : 0) << one;
  for (const auto& one : quality["accesses"]) {
    EXPECT_EQ(one["bits"], (nlohmann::json{{"32", 1}})) << one;
    EXPECT_EQ(one["lines"][0]["line"],
              one["what"] == "global loads" || one["what"] == "shared stores" ? 4 : 6)
        << one;
  }
  EXPECT_EQ(quality["accesses"].size(), 4u);
  EXPECT_GT(d["profile"]["counters"]["twice(float const*, float*, int)/registers"], 0);
}

TEST(inspect_hip, of_what_does_not_compile_shows_the_compilers_words) {
  if (!has_hipcc()) GTEST_SKIP() << "no hipcc on this machine";
  auto path = write_file("kernel.hip", std::string{hip_doubler} + "void f() { g(); }\n");
  auto x = kernelmill({"inspect", path, "--arch", "gfx90a"});
  EXPECT_EQ(x.code, 0);
  EXPECT_THAT(x.out, AllOf(HasSubstr("kernel.hip:11:"), HasSubstr("not compiled"),
                           Not(HasSubstr("/build/"))));
}

TEST(inspect_hip, an_architecture_that_hipcc_does_not_know_is_a_wrong_argument) {
  if (!has_hipcc()) GTEST_SKIP() << "no hipcc on this machine";
  auto x =
      kernelmill({"inspect", write_file("kernel.hip", hip_doubler), "--arch", "gfx1", "--json"});
  EXPECT_EQ(x.code, 2) << x.out;
  EXPECT_EQ(x.fault()["category"], "unsupported_architecture");
}

TEST(build_hip, says_registers_of_both_kinds_and_the_mix) {
  if (!has_hipcc()) GTEST_SKIP() << "no hipcc on this machine";
  auto path = write_file("kernel.hip", hip_doubler);
  auto x = kernelmill({"build", path, "--arch", "gfx90a", "--json"});
  auto d = x.document();
  ASSERT_TRUE(d.is_object()) << x.err;
  ASSERT_EQ(d["compiled"], true) << d;
  EXPECT_EQ(d["backend"], "hip");
  auto listed = d["listing"]["build"]["kernels"][0], built = d["build"]["kernels"][0];
  EXPECT_EQ(listed["vgprs"], built["registers"]) << "a table of lines changes no code";
  EXPECT_EQ(listed["lds_bytes"], built["shared_bytes"]);
  EXPECT_FALSE(d["listing"].contains("triview"));
  auto whole = kernelmill({"build", path, "--arch", "gfx90a", "--assembly"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.out, AllOf(HasSubstr("SGPRS"), HasSubstr("s_barrier"), HasSubstr("compiled")));
}

TEST(build_assembly, is_of_gpus_alone) {
  auto path = write_file("kernel.cpp", "extern \"C\" void solve() {}\n");
  auto x = kernelmill({"build", path, "--assembly", "--json"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "usage");
}

} // namespace profile_command_test
} // namespace kernelmill::test
