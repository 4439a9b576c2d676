// `eval --compile-only`, and what there is of HIP without an AMD GPU.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/machine/amd_gpu.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace compile_only_test {

using testing::AllOf;
using testing::HasSubstr;

const std::string host_kernel =
    "extern \"C\" void solve(const float* x, float* y, int rows, int cols) { y[0] = x[rows]; }\n";

const std::string device_kernel = R"(__global__ void first(const float* x, float* y, int cols) {
  y[blockIdx.x] = x[long(blockIdx.x) * cols];
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  first<<<rows, 1>>>(x, y, cols);
}
)";

program_result compile(const std::string& file, const std::string& source,
                       std::vector<std::string> more = {},
                       const std::string& task = "native/row_sum") {
  std::vector<std::string> arguments{"eval", "--task", task, "--compile-only", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back(write_file(file, source));
  return kernelmill(arguments);
}

void expect_usage(const program_result& x, const std::string& text) {
  EXPECT_EQ(x.code, 2) << x.out;
  EXPECT_EQ(x.out, "");
  auto fault = x.fault();
  ASSERT_TRUE(fault.is_object()) << x.err;
  EXPECT_EQ(fault["category"], "usage");
  EXPECT_THAT(fault["message"].get<std::string>(), HasSubstr(text));
  EXPECT_NE(fault["hint"], "");
}

// Asked of the program, so that this test needs no library of it.
bool can_compile(const std::string& architecture) {
  auto x = compile("probe.cu", device_kernel, {"--arch", architecture});
  auto fault = x.fault();
  return !fault.is_object() || fault["category"] != "toolchain_missing";
}

TEST(compile_only, says_what_the_compiler_made_of_it_and_judges_nothing) {
  auto x = compile("kernel.cpp", host_kernel);
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["backend"], "cpu");
  EXPECT_EQ(d["compiled"], true);
  EXPECT_THAT(d["build"]["toolchain"].get<std::string>(), HasSubstr("g++"));
  EXPECT_EQ(d["build"]["log"], "");
  EXPECT_TRUE(d["build"]["kernels"].empty());
  EXPECT_EQ(d["error"]["class"], "none");
  EXPECT_FALSE(d.contains("outcome"));
  EXPECT_FALSE(d.contains("reward"));
}

TEST(compile_only, a_candidate_that_does_not_compile_is_a_normal_answer) {
  auto x = compile("kernel.cpp", "extern \"C\" void solve( {\n");
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["compiled"], false);
  EXPECT_EQ(d["error"]["category"], "compile_error");
  ASSERT_GE(d["build"]["diagnostics"].size(), 1u);
  EXPECT_EQ(d["build"]["diagnostics"][0]["line"], 1);
}

TEST(compile_only, a_file_without_code_is_told_so) {
  auto x = compile("kernel.cpp", " \n");
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["format_ok"], false);
  EXPECT_EQ(x.document()["error"]["category"], "format_error");
}

TEST(compile_only, prints_the_log_for_people) {
  auto path = write_file("kernel.cpp", "extern \"C\" void solve( {\n");
  auto x = kernelmill({"eval", "--task", "native/row_sum", "--compile-only", path});
  EXPECT_EQ(x.code, 0);
  EXPECT_THAT(x.out, AllOf(HasSubstr("kernel.cpp:1:"), HasSubstr("not compiled")));
}

TEST(compile_only, says_what_it_builds_for_where_no_option_does) {
  if (!can_compile("sm_90")) GTEST_SKIP() << "no nvcc on this machine";
  auto x = compile("kernel.cu", device_kernel);
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["compiled"], true) << x.out;
  if (std::filesystem::exists("/dev/nvidia0")) return; // built for that
  EXPECT_THAT(x.document()["build"]["toolchain"].get<std::string>(), HasSubstr("sm_90"));
  auto told = kernelmill({"build", write_file("kernel.cu", device_kernel)});
  EXPECT_THAT(told.err, HasSubstr("built for sm_90; --arch names another"));
}

TEST(compile_only, builds_cuda_without_a_gpu) {
  if (!can_compile("sm_90")) GTEST_SKIP() << "no nvcc on this machine";
  auto x = compile("kernel.cu", device_kernel, {"--arch", "sm_90"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["backend"], "cuda");
  EXPECT_EQ(d["compiled"], true) << x.out;
  ASSERT_EQ(d["build"]["kernels"].size(), 1u);
  EXPECT_GT(d["build"]["kernels"][0]["registers"], 0);
}

TEST(compile_only, builds_hip_without_a_gpu) {
  if (!can_compile("gfx90a")) GTEST_SKIP() << "no hipcc on this machine";
  auto x = compile("kernel.hip", device_kernel, {"--arch", "gfx90a"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["backend"], "hip");
  EXPECT_EQ(d["compiled"], true) << x.out;
  EXPECT_THAT(d["build"]["toolchain"].get<std::string>(), HasSubstr("gfx90a"));
  ASSERT_EQ(d["build"]["kernels"].size(), 1u);
  EXPECT_GT(d["build"]["kernels"][0]["registers"], 0);
}

TEST(compile_only, builds_hip_for_an_nvidia_gpu_without_one) {
  if (!can_compile("sm_90")) GTEST_SKIP() << "no nvcc on this machine";
  auto x = compile("kernel.hip", device_kernel, {"--backend", "hip", "--arch", "sm_90"});
  if (x.fault().is_object() && x.fault()["category"] == "toolchain_missing")
    GTEST_SKIP() << x.fault()["message"];
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["backend"], "hip");
  EXPECT_EQ(d["compiled"], true) << x.out;
  EXPECT_THAT(d["build"]["toolchain"].get<std::string>(),
              AllOf(HasSubstr("sm_90"), HasSubstr("on NVIDIA")));
}

TEST(compile_only, gives_the_diagnostics_of_hip_as_data) {
  if (!can_compile("gfx90a")) GTEST_SKIP() << "no hipcc on this machine";
  auto x = compile("kernel.hip", device_kernel + "void f() { g(); }\n", {"--arch", "gfx90a"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["compiled"], false);
  EXPECT_EQ(d["error"]["category"], "compile_error");
  ASSERT_GE(d["build"]["diagnostics"].size(), 1u);
  EXPECT_EQ(d["build"]["diagnostics"][0]["file"], "kernel.hip");
  EXPECT_EQ(d["build"]["diagnostics"][0]["line"], 7);
  EXPECT_EQ(d["build"]["diagnostics"][0]["severity"], "error");
}

TEST(compile_only, an_architecture_that_the_compiler_does_not_know_is_2) {
  for (auto [file, architecture] : {std::pair{"kernel.hip", "gfx1"}, {"kernel.cu", "sm_1"}}) {
    if (!can_compile(architecture)) continue;
    auto x = compile(file, device_kernel, {"--arch", architecture});
    EXPECT_EQ(x.code, 2) << x.out;
    EXPECT_EQ(x.fault()["category"], "unsupported_architecture");
    EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr(architecture));
  }
}

TEST(compile_only, an_architecture_of_another_backend_is_a_wrong_argument) {
  expect_usage(compile("k.cu", device_kernel, {"--backend", "cuda", "--arch", "gfx90a"}), "gfx90a");
  expect_usage(compile("k.hip", device_kernel, {"--backend", "hip", "--arch", "zen4"}), "zen4");
  expect_usage(compile("k.cpp", host_kernel, {"--backend", "cpu", "--arch", "sm_90"}), "cpu");
  expect_usage(compile("k.cu", device_kernel, {"--backend", "cuda", "--arch", "sm_90 -x"}), "-x");
}

TEST(compile_only, without_a_gpu_hip_is_built_for_the_usual_one) {
  if (!can_compile("gfx90a")) GTEST_SKIP() << "no hipcc on this machine";
  if (!amd_architecture().empty()) GTEST_SKIP() << "this machine has an AMD GPU";
  auto x = compile("kernel.hip", device_kernel);
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.document()["build"]["toolchain"].get<std::string>(), HasSubstr("gfx90a"));
}

TEST(compile_only, of_a_task_that_is_not_for_hip_is_refused) {
  if (!can_compile("gfx90a")) GTEST_SKIP() << "no hipcc on this machine";
  auto x =
      compile("kernel.hip", device_kernel, {"--arch", "gfx90a"}, "families/reduction_sum_hard");
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "unsupported_backend");
}

TEST(eval_arch, is_for_compile_only) {
  auto path = write_file("kernel.cu", device_kernel);
  expect_usage(kernelmill({"eval", "--task", "native/row_sum", "--json", "--arch", "sm_90", path}),
               "--arch");
}

TEST(eval_hip, says_what_is_missing_and_what_can_be_done) {
  if (std::filesystem::exists("/dev/nvidia0") || !amd_architecture().empty())
    GTEST_SKIP() << "this machine has a GPU";
  auto path = write_file("kernel.hip", device_kernel);
  for (const auto& more : std::vector<std::vector<std::string>>{{"--backend", "hip"}, {}}) {
    std::vector<std::string> arguments{"eval", "--task", "native/row_sum", "--json", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto x = kernelmill(arguments);
    EXPECT_EQ(x.code, 1);
    EXPECT_EQ(x.out, "");
    auto fault = x.fault();
    ASSERT_TRUE(fault.is_object()) << x.err;
    EXPECT_EQ(fault["category"], "nvml_missing");
    EXPECT_THAT(
        fault["message"].get<std::string>(),
        AllOf(HasSubstr("neither an AMD GPU"), HasSubstr("libamdhip64.so"), HasSubstr("/dev/kfd")));
    EXPECT_THAT(fault["hint"].get<std::string>(), HasSubstr("--compile-only"));
  }
}

TEST(amd_architecture, is_that_of_the_first_gpu_that_the_driver_lists) {
  namespace fs = std::filesystem;
  auto root = scratch() + "/nodes";
  EXPECT_EQ(amd_architecture(root), "");
  auto node = [&](const char* name, const char* version) {
    fs::create_directories(root + "/" + name);
    std::ofstream{root + "/" + name + "/properties"}
        << "cpu_cores_count 0\nsimd_count 440\ngfx_target_version " << version << "\nvendor_id 1\n";
  };
  node("0", "0"); // the processor
  EXPECT_EQ(amd_architecture(root), "");
  node("1", "90010");
  node("2", "110000");
  EXPECT_EQ(amd_architecture(root), "gfx90a");
  node("1", "90402");
  EXPECT_EQ(amd_architecture(root), "gfx942");
  node("1", "100300");
  EXPECT_EQ(amd_architecture(root), "gfx1030");
}

} // namespace compile_only_test

} // namespace kernelmill::test
