// `profile FILE` and `sanitize FILE`: the GPU is fake_nvml.cpp's and the tools are scripts; the
// compiler and the walls are real.

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {
namespace examine_command_test {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* honest =
    "// launch: f<<<rows, 32>>>(x, y, rows, cols)\n"
    "extern \"C\" __global__ void f(const float* x, float* y, int rows, int cols) {\n"
    "  if (threadIdx.x != 0) return;\n"
    "  float s = 0;\n"
    "  for (int j = 0; j < cols; ++j) s += x[long(blockIdx.x) * cols + j];\n"
    "  y[blockIdx.x] = s;\n"
    "}\n";

std::string golden(const std::string& name) {
  return source_file("tests/unit/profiler/golden/" + name);
}

class examine_command : public testing::Test {
protected:
  void SetUp() override {
    if (::access("/usr/local/cuda/bin/nvcc", X_OK) != 0) GTEST_SKIP() << "no nvcc on this machine";
    fs::create_directories(tools_);
  }

  // A tool that writes a recorded report where its words say, and these words to stdout.
  void write_tool(const std::string& name, const std::string& report,
                  const std::string& more = {}) {
    fs::copy_file(report, tools_ / "report", fs::copy_options::overwrite_existing);
    std::ofstream{tools_ / name} << "#!/bin/sh\n"
                                    "while [ $# -gt 0 ]; do case $1 in --log-file=*) log=${1#*=};; "
                                    "--log-file) log=$2;; esac; shift; done\n"
                                 << more << "\ncat " << (tools_ / "report").string() << " > $log\n";
    fs::permissions(tools_ / name, fs::perms{0755});
    fs::permissions(tools_ / "report", fs::perms{0644});
    fs::permissions(tools_, fs::perms{0755});
  }

  program_result run(std::vector<std::string> arguments, const std::string& source = honest) {
    program_options options;
    options.input = source;
    options.environment = {"PATH=" + tools_.string() + ":/usr/bin:/bin",
                           "LD_LIBRARY_PATH=" + binary().substr(0, binary().rfind('/')) +
                               "/fake_nvml"};
    arguments.insert(arguments.begin() + 1, {"-", "--task", "native/row_sum"});
    return kernelmill(arguments, options);
  }

  fs::path tools_ = fs::path{scratch()} / "tools";
};

TEST_F(examine_command, profile_makes_cards_of_what_ncu_reports) {
  write_tool("ncu", golden("ncu_two_kernels_by_format.csv"));
  auto x = run({"profile"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("rows=8192 cols=8192"),
                           HasSubstr("limited by memory_bandwidth"), HasSubstr("try: ")));
  auto d = run({"profile", "--pack", "full", "--json"}).document();
  EXPECT_EQ(d["problem"], "none") << d;
  EXPECT_EQ(d["compiled"], true);
  EXPECT_EQ(d["contract"], "device");
  EXPECT_EQ(d["kernels"].size(), 2u);
}

TEST_F(examine_command, a_bundle_holds_what_the_tools_wrote) {
  auto document = [](const std::string& path) {
    std::ifstream in{fs::path{scratch()} / path};
    return nlohmann::json::parse(in, nullptr, false);
  };
  write_tool("ncu", golden("ncu_two_kernels_by_format.csv"));
  auto x = run({"profile", "--bundle", scratch() + "/profiled"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(document("profiled/bottlenecks/primary.json")["primary_bottleneck"],
            "memory_bandwidth");
  EXPECT_EQ(document("profiled/manifest.json")["target_backend"], "cuda");
  EXPECT_TRUE(fs::exists(scratch() + "/profiled/reports/ncu/report.csv"));
  write_tool("compute-sanitizer", golden("memcheck_by_format.txt"));
  x = run({"sanitize", "--tool", "memcheck", "--bundle", scratch() + "/sanitized"});
  EXPECT_EQ(x.code, 5) << x.err;
  auto found = document("sanitized/sanitize/memcheck_summary.json");
  EXPECT_EQ(found["clean"], false);
  EXPECT_EQ(found["checks"][0]["findings"][0]["family"], "out_of_bounds");
  EXPECT_TRUE(fs::exists(scratch() + "/sanitized/reports/sanitizer/memcheck.txt"));
}

TEST_F(examine_command, profile_that_may_not_be_had_is_named_and_no_fault) {
  write_tool("ncu", golden("ncu_no_permission_by_format.txt"));
  auto x = run({"profile"});
  EXPECT_EQ(x.code, 5);
  EXPECT_THAT(x.err, AllOf(HasSubstr("no_permission"), HasSubstr("NVreg_RestrictProfiling")));
}

TEST_F(examine_command, sanitize_lists_findings_of_each_tool) {
  write_tool("compute-sanitizer", golden("memcheck_by_format.txt"), "printf 'a\\033[31mred\\n'");
  auto d = run({"sanitize", "--tool", "memcheck", "--json"}).document();
  ASSERT_EQ(d["checks"].size(), 1u) << d;
  EXPECT_EQ(d["checks"][0]["check"], "memcheck");
  EXPECT_EQ(d["checks"][0]["findings"][0]["family"], "out_of_bounds");
  EXPECT_EQ(d["checks"][0]["findings"][0]["at"]["line"], 14);
  EXPECT_THAT(d["checks"][0]["said"].get<std::string>(),
              AllOf(HasSubstr("red"), Not(HasSubstr("\033"))));
  auto x = run({"sanitize"});
  EXPECT_EQ(x.code, 5);
  EXPECT_THAT(x.out,
              AllOf(HasSubstr("memcheck\n"), HasSubstr("racecheck\n"), HasSubstr("kernel.cu:14")));
}

TEST_F(examine_command, sanitize_of_nothing_ends_well) {
  write_file("clean.txt", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n");
  write_tool("compute-sanitizer", scratch() + "/clean.txt");
  auto x = run({"sanitize", "--tool", "initcheck"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("nothing was found"));
}

TEST_F(examine_command, profile_without_ncu_shows_what_the_build_and_the_machine_tell) {
  fs::remove(tools_ / "ncu");
  if (fs::exists("/usr/local/cuda/bin/ncu")) GTEST_SKIP() << "there is one";
  auto x = run({"profile"});
  EXPECT_EQ(x.code, 5);
  EXPECT_THAT(x.out,
              AllOf(HasSubstr("tier 0"), HasSubstr("registers "), HasSubstr("block_threads 32"),
                    HasSubstr("grid_blocks 8192"), HasSubstr("missing: ")));
  EXPECT_THAT(x.err, AllOf(HasSubstr("tool_missing"), HasSubstr("Nsight Compute")));
  auto d = run({"profile", "--json"}).document();
  EXPECT_EQ(d["problem"], "tool_missing") << d;
  EXPECT_EQ(d["kernels"].size(), 0u);
  EXPECT_GT(d["tier0"]["counters"]["f/registers"], 0);
  EXPECT_GT(d["tier0"]["counters"]["f/waves"], 0) << "the machine has multiprocessors";
  EXPECT_FALSE(d["tier0"]["counters"].contains("time")) << "nothing was timed, which is not zero";
}

TEST_F(examine_command, sanitize_without_its_tool_says_which) {
  fs::remove(tools_ / "compute-sanitizer");
  if (fs::exists("/usr/local/cuda/bin/compute-sanitizer")) GTEST_SKIP() << "there is one";
  auto x = run({"sanitize", "--json"});
  EXPECT_EQ(x.code, 1);
  EXPECT_EQ(x.fault()["category"], "tool_missing");
}

constexpr const char* library =
    "__global__ void f(const float* x, float* y, int n) { y[0] = x[n - 1]; }\n"
    "extern \"C\" void solve(const float* x, float* y, int, int n) { f<<<1, 1>>>(x, y, n); }\n";

TEST_F(examine_command, profile_of_a_library_is_its_own_word_and_says_so) {
  write_tool("ncu", golden("ncu_two_kernels_by_format.csv"), "true");
  auto x = run({"profile"}, library);
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("advice only"), HasSubstr("limited by memory_bandwidth")));
  auto d = run({"profile", "--json"}, library).document();
  EXPECT_EQ(d["contract"], "native") << d;
  EXPECT_EQ(d["author"], "candidate");
  EXPECT_EQ(run({"profile", "--json"}).document()["author"], "ncu");
}

TEST_F(examine_command, profile_chooses_kernels_by_name) {
  write_tool("ncu", golden("ncu_two_kernels_by_format.csv"));
  auto d = run({"profile", "--kernel", "^sums", "--json"}).document();
  ASSERT_EQ(d["kernels"].size(), 1u) << d;
  EXPECT_EQ(run({"profile", "--kernel", "none_such", "--json"}).document()["problem"],
            "no_kernels");
}

constexpr const char* adds = // line 4 adds
    "// launch: f<<<rows, 32>>>(x, y, rows, cols)\n"
    "extern \"C\" __global__ void f(const float* x, float* y, int rows, int cols) {\n"
    "  for (int j = threadIdx.x; j < cols; j += 32)\n"
    "    atomicAdd(y + blockIdx.x, x[long(blockIdx.x) * cols + j]);\n"
    "}\n";

// Metrics of ncu's names; every metric of the pack `full` that cards on atomics and the roofline
// read.
constexpr const char* atomics_report =
    "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"smsp__inst_executed.sum\","
    "\"smsp__inst_executed_op_global_red.sum\",\"dram__bytes.sum\","
    "\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\","
    "\"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum\","
    "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\","
    "\"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active\","
    "\"sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active\","
    "\"dram__throughput.avg.pct_of_peak_sustained_elapsed\"\n"
    "\"\",\"\",\"ns\",\"inst\",\"inst\",\"byte\",\"inst\",\"inst\",\"inst\",\"%\",\"%\",\"%\"\n"
    "\"0\",\"f(const float *, float *, int, int)\",\"1,000,000\",\"1,000,000\",\"100,000\","
    "\"268,000,000\",\"67,000,000\",\"0\",\"0\",\"0\",\"0\",\"8\"\n";

TEST_F(examine_command, profile_says_where_in_the_source_and_draws_the_roofline) {
  write_file("atomics.csv", atomics_report);
  write_tool("ncu", scratch() + "/atomics.csv");
  auto svg = scratch() + "/roofline.svg";
  auto x = run({"profile", "--pack", "full", "--svg", svg}, adds);
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("in the source: line 4 `atomicAdd"), HasSubstr("of atomics)"),
                           HasSubstr("roofline\n"), HasSubstr("A call, by the task's"),
                           HasSubstr("B f, by counters: 0.25 flop/B (ridge ")));
  std::ifstream in{svg};
  const std::string picture{std::istreambuf_iterator<char>{in}, {}};
  EXPECT_THAT(picture, AllOf(HasSubstr("<svg "), HasSubstr("class=\"roof\""), HasSubstr("<circle "),
                             HasSubstr("flop/B"), HasSubstr("</svg>")));
  auto d = run({"profile", "--pack", "full", "--json"}, adds).document();
  EXPECT_EQ(d["kernels"][0]["cards"][0]["bottleneck"], "atomics") << d;
  EXPECT_EQ(d["kernels"][0]["cards"][0]["lines"][0]["line"], 4);
  EXPECT_EQ(d["kernels"][0]["roofline"]["arithmetic_intensity"]["unit"], "flop/B");
  EXPECT_EQ(d["roofline"]["peak_bandwidth"]["value"], 2e6 * 2619 * 640);
  EXPECT_NEAR(d["roofline"]["arithmetic_intensity"]["value"], 0.25, 0.01);
}

TEST_F(examine_command, sanitize_takes_a_library_too) {
  write_file("clean.txt", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n");
  write_tool("compute-sanitizer", scratch() + "/clean.txt");
  auto d = run({"sanitize", "--tool", "memcheck", "--json"}, library).document();
  EXPECT_EQ(d["contract"], "native") << d;
  EXPECT_EQ(d["checks"][0]["problem"], "none");
}

TEST_F(examine_command, prints_what_the_compiler_says_of_what_does_not_compile) {
  auto x = run({"profile", "--json"}, std::string{"// launch: f<<<1, 1>>>(x, y)\n"} + "nonsense\n");
  EXPECT_EQ(x.code, 5);
  EXPECT_EQ(x.document()["compiled"], false);
  EXPECT_THAT(x.document()["log"].get<std::string>(), HasSubstr("nonsense"));
}

} // namespace examine_command_test
} // namespace kernelmill::test
