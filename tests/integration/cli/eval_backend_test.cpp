// How `eval` chooses a backend and a contract, on machines that have none but the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace eval_backend_test {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const std::string kernel = R"(__global__ void sum_rows(const float* x, float* y, int cols) {
  float sum = 0;
  for (int j = 0; j < cols; ++j) sum += x[long(blockIdx.x) * cols + j];
  y[blockIdx.x] = sum;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  sum_rows<<<rows, 1>>>(x, y, cols);
}
)";

program_result eval(const std::vector<std::string>& more, const std::string& file) {
  std::vector<std::string> arguments{"eval", "--task", "native/row_sum", "--no-timing", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back(write_file(file, kernel));
  return kernelmill(arguments);
}

// `hint`: what helps without a GPU.
void expect_no_gpu(const program_result& x, const char* hint) {
  EXPECT_EQ(x.code, 1);
  EXPECT_EQ(x.out, "");
  auto fault = x.fault();
  ASSERT_TRUE(fault.is_object()) << x.err;
  EXPECT_EQ(fault["class"], "infrastructure");
  EXPECT_THAT(fault["category"].get<std::string>(), AnyOf("nvml_missing", "no_gpu"));
  EXPECT_THAT(fault["message"].get<std::string>(), HasSubstr("failed to"));
  EXPECT_THAT(fault["hint"].get<std::string>(), HasSubstr(hint));
}

// g++ knows nothing of __global__: a CPU is no way out for a .cu file.
const char* const compile_it = "kernelmill build --arch sm_90";

// Asked of the program, so that this test needs no library of it.
bool has_gpu() {
  auto x = eval({"--backend", "cuda"}, "probe.cu");
  auto fault = x.fault();
  return !fault.is_object() ||
         (fault["category"] != "nvml_missing" && fault["category"] != "no_gpu");
}

TEST(eval_backend, cuda_without_a_gpu_is_1_with_a_next_step) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_no_gpu(eval({"--backend", "cuda"}, "kernel.cu"), compile_it);
  expect_no_gpu(eval({"--backend", "cuda"}, "kernel.cpp"), "--backend cpu");
}

TEST(eval_backend, a_cu_file_means_cuda) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_no_gpu(eval({}, "kernel.cu"), compile_it);
}

TEST(eval_backend, a_named_gpu_means_cuda) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_no_gpu(eval({"--gpu", "0"}, "kernel.cu"), compile_it);
}

// Neither has a way to a CPU for this file, and `profile` has no --backend at all.
TEST(eval_backend, sanitize_and_profile_name_no_backend_that_does_not_help) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  auto cuda = write_file("kernel.cu", kernel), native = write_file("kernel.cpp", kernel);
  expect_no_gpu(kernelmill({"sanitize", "--task", "native/row_sum", "--json", cuda}), compile_it);
  for (const auto& file : {cuda, native}) {
    auto x = kernelmill({"profile", "--task", "native/row_sum", "--json", file});
    expect_no_gpu(x, "a machine with an NVIDIA GPU");
    EXPECT_THAT(x.err, Not(HasSubstr("--backend")));
  }
}

TEST(eval_backend, a_gpu_that_is_no_number_is_2) {
  for (auto* gpu : {"x", "-1", "0x", "1.5", "99999999999999"}) {
    auto x = eval({std::string{"--gpu="} + gpu}, "kernel.cu");
    EXPECT_EQ(x.code, 2) << gpu;
    EXPECT_EQ(x.out, "") << gpu;
    auto fault = x.fault();
    ASSERT_TRUE(fault.is_object()) << gpu << x.err;
    EXPECT_EQ(fault["class"], "configuration") << gpu;
    EXPECT_EQ(fault["category"], "usage") << gpu;
    EXPECT_THAT(fault["message"].get<std::string>(), HasSubstr("--gpu")) << gpu;
    EXPECT_THAT(fault["hint"].get<std::string>(), HasSubstr("kernelmill doctor")) << gpu;
  }
}

const std::string device_code = "// launch: sum_rows<<<rows, 1>>>(x, y, cols)\n"
                                "extern \"C\" __global__ void sum_rows(const float* x, float* y, "
                                "int cols) {\n  y[blockIdx.x] = x[long(blockIdx.x) * cols];\n}\n";

void expect_no_device_code(const program_result& x) {
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.out, "");
  auto fault = x.fault();
  ASSERT_TRUE(fault.is_object()) << x.err;
  EXPECT_EQ(fault["class"], "configuration");
  EXPECT_EQ(fault["category"], "unsupported_contract");
  EXPECT_THAT(fault["message"].get<std::string>(),
              AllOf(HasSubstr("contract device"), HasSubstr("native/row_sum"),
                    HasSubstr("backend is cpu")));
  EXPECT_THAT(fault["hint"].get<std::string>(), HasSubstr("--contract native"));
}

std::vector<std::string> eval_of_device_code(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"eval",   "--task",     "native/row_sum",
                                     "--json", "--contract", "device"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(eval_contract, device_on_the_cpu_is_2_with_a_next_step) {
  program_options options;
  options.input = device_code;
  expect_no_device_code(kernelmill(eval_of_device_code({"--backend", "cpu", "-"}), options));
  auto file = write_file("device.cpp", device_code);
  expect_no_device_code(kernelmill(eval_of_device_code({file})));
  auto compiled = kernelmill(eval_of_device_code({"--compile-only", "--backend", "cpu", file}));
  expect_no_device_code(compiled);
}

TEST(eval_contract, device_without_a_gpu_says_which_of_the_two_is_missing) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  program_options options;
  options.input = device_code;
  expect_no_device_code(kernelmill(eval_of_device_code({"-"}), options));
  expect_no_gpu(kernelmill(eval_of_device_code({write_file("device.cu", device_code)})),
                compile_it);
}

TEST(eval_contract, that_there_is_not_is_2) {
  auto x = kernelmill({"eval", "--task", "native/row_sum", "--contract", "triton", "-"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, AllOf(HasSubstr("triton"), HasSubstr("device")));
}

// Launch lines in a source for the CPU are comments.
TEST(eval_contract, auto_on_the_cpu_is_native) {
  auto file =
      write_file("commented.cpp", "// launch: nothing<<<1, 1>>>()\n"
                                  "extern \"C\" void solve(const float*, float* y, int rows, "
                                  "int) {\n  for (int i = 0; i < rows; ++i) y[i] = 1;\n}\n");
  auto x = kernelmill({"eval", "--task", "native/row_sum", "--no-timing", "--json", file});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["contract"], "native");
  EXPECT_EQ(x.document()["compiled"], true);
}

TEST(eval_contract, device_code_compiles_without_a_gpu) {
  auto file = write_file("device.cu", device_code);
  std::vector<std::string> arguments{"eval",   "--task", "native/row_sum", "--compile-only",
                                     "--json", "--arch", "sm_90",          file};
  auto x = kernelmill(arguments); // auto: by its launch lines
  if (x.code != 0) {
    EXPECT_EQ(x.fault()["category"], "toolchain_missing") << x.err;
    GTEST_SKIP() << x.err;
  }
  auto d = x.document();
  if (d["error"]["class"] == "infrastructure") GTEST_SKIP() << x.out;
  EXPECT_EQ(d["contract"], "device");
  EXPECT_EQ(d["compiled"], true) << x.out;
  EXPECT_THAT(d["build"]["toolchain"].get<std::string>(), HasSubstr("NVRTC"));
  ASSERT_EQ(d["build"]["kernels"].size(), 1u);
  EXPECT_EQ(d["build"]["kernels"][0]["name"], "sum_rows");
  // Told to be a library's source it is no longer one that the toolchain links to its task.
  arguments.insert(arguments.begin() + 3, {"--contract", "native"});
  auto native = kernelmill(arguments);
  ASSERT_EQ(native.code, 0) << native.err;
  EXPECT_EQ(native.document()["contract"], "native");
  EXPECT_THAT(native.document()["build"]["toolchain"].get<std::string>(), HasSubstr("nvcc"));
}

TEST(eval_contract, a_bad_launch_line_is_a_normal_answer) {
  auto file = write_file("bad.cu", "// launch: sum_rows<<<rows>>>(x, y, cols)\n" + device_code);
  auto x = kernelmill(
      {"eval", "--task", "native/row_sum", "--compile-only", "--json", "--arch", "sm_90", file});
  if (x.code == 1) GTEST_SKIP() << x.err;
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["compiled"], false);
  EXPECT_EQ(x.document()["error"]["class"], "candidate");
  EXPECT_EQ(x.document()["error"]["category"], "bad_launch");
  EXPECT_THAT(x.document()["error"]["message"].get<std::string>(), HasSubstr("line 1: "));
}

TEST(eval_backend, that_there_is_not_is_2) {
  auto x = eval({"--backend", "rocm"}, "kernel.cu");
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("rocm"));
}

} // namespace eval_backend_test

} // namespace kernelmill::test
