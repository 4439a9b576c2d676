// How `eval` chooses a backend, on machines that have none but the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace {

using testing::AnyOf;
using testing::HasSubstr;

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

void expect_no_gpu(const program_result& x) {
  EXPECT_EQ(x.code, 1);
  EXPECT_EQ(x.out, "");
  auto fault = x.fault();
  ASSERT_TRUE(fault.is_object()) << x.err;
  EXPECT_EQ(fault["class"], "infrastructure");
  EXPECT_THAT(fault["category"].get<std::string>(), AnyOf("nvml_missing", "no_gpu"));
  EXPECT_THAT(fault["message"].get<std::string>(), HasSubstr("failed to"));
  EXPECT_THAT(fault["hint"].get<std::string>(), HasSubstr("--backend cpu"));
}

// Asked of the program, so that this test needs no library of it.
bool has_gpu() {
  auto x = eval({"--backend", "cuda"}, "probe.cu");
  auto fault = x.fault();
  return !fault.is_object() ||
         (fault["category"] != "nvml_missing" && fault["category"] != "no_gpu");
}

TEST(eval_backend, cuda_without_a_gpu_is_1_with_a_next_step) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_no_gpu(eval({"--backend", "cuda"}, "kernel.cu"));
}

TEST(eval_backend, a_cu_file_means_cuda) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_no_gpu(eval({}, "kernel.cu"));
}

TEST(eval_backend, a_named_gpu_means_cuda) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_no_gpu(eval({"--gpu", "0"}, "kernel.cu"));
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

TEST(eval_backend, that_there_is_not_is_2) {
  auto x = eval({"--backend", "rocm"}, "kernel.cu");
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("rocm"));
}

} // namespace

} // namespace kernelmill::test
