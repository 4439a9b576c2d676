// NVRTC. No GPU is needed to compile for one.

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/cuda/runtime_compiler.hpp"
#include "gpu/referee/device/kernels_text.hpp"

using namespace kernelmill;
using testing::HasSubstr;
using testing::StartsWith;

namespace runtime_compiler_test {

const std::string elf = "\x7f"
                        "ELF";

const std::string twice = R"(extern "C" __global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
)";

class runtime_compiler : public testing::Test {
protected:
  void SetUp() override {
    auto x = cuda::compile_device_code(twice, "probe.cu", "sm_90");
    if (x) return;
    EXPECT_EQ(x.error().cls, fault_class::infrastructure);
    EXPECT_EQ(x.error().category, "nvrtc_missing");
    EXPECT_THAT(x.error().hint, HasSubstr("--backend cpu"));
    GTEST_SKIP() << "no NVRTC on this machine: " << x.error().message;
  }

  static cuda::compiled_device_code compile(const std::string& source,
                                            const std::vector<std::string>& flags = {}) {
    auto x = cuda::compile_device_code(source, "kernel.cu", "sm_90", flags);
    if (x) return *x;
    ADD_FAILURE() << render(x.error());
    return {};
  }
};

TEST_F(runtime_compiler, makes_a_cubin_of_a_kernel) {
  auto x = compile(twice);
  EXPECT_TRUE(x.ok) << x.log;
  EXPECT_EQ(x.log, "");
  EXPECT_THAT(x.cubin, StartsWith(elf));
  EXPECT_THAT(x.cubin, HasSubstr("twice"));
}

TEST_F(runtime_compiler, names_the_file_and_the_line_of_an_error) {
  auto broken = twice;
  broken.replace(broken.find("x[i]"), 4, "z[i]");
  auto x = compile(broken);
  EXPECT_FALSE(x.ok);
  EXPECT_EQ(x.cubin, "");
  EXPECT_THAT(x.log, HasSubstr("kernel.cu(3)"));
  EXPECT_THAT(x.log, HasSubstr("\"z\" is undefined"));
  EXPECT_EQ(x.log.find('\0'), std::string::npos);
}

// NVRTC puts a zero between what ptxas says with -v and its error.
TEST_F(runtime_compiler, has_the_whole_log_in_one_text) {
  auto x = compile("extern \"C\" __global__ void much(float* x) {\n"
                   "  __shared__ float all[65536];\n"
                   "  all[threadIdx.x] = x[threadIdx.x];\n  __syncthreads();\n"
                   "  x[threadIdx.x] = all[threadIdx.x ^ 1];\n}\n",
                   {"--ptxas-options=-v"});
  EXPECT_FALSE(x.ok);
  EXPECT_EQ(x.log.find('\0'), std::string::npos);
  EXPECT_THAT(x.log,
              HasSubstr("\nptxas error   : Entry function 'much' uses too much shared data"));
}

TEST_F(runtime_compiler, passes_flags_on) {
  auto source = "#ifndef FACTOR\n#error no factor\n#endif\n" + twice;
  EXPECT_THAT(compile(source).log, HasSubstr("no factor"));
  EXPECT_TRUE(compile(source, {"-DFACTOR=2"}).ok);
}

TEST_F(runtime_compiler, an_architecture_that_there_is_not_is_told) {
  auto x = cuda::compile_device_code(twice, "kernel.cu", "sm_1");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_FALSE(x->ok);
  EXPECT_THAT(x->log, HasSubstr("arch"));
}

TEST_F(runtime_compiler, can_be_used_by_many_threads) {
  std::vector<cuda::compiled_device_code> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = compile(i % 2 == 0 ? twice : "broken " + twice); });
  for (auto& x : threads) x.join();
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].ok, i % 2 == 0) << i;
}

TEST_F(runtime_compiler, has_nothing_to_say_of_the_referees_own_kernels) {
  auto x = compile(device_kernels_text);
  EXPECT_TRUE(x.ok) << x.log;
  EXPECT_EQ(x.log, "");
  EXPECT_THAT(x.cubin, StartsWith(elf));
  for (auto* kernel :
       {"fill_f32", "verify_i32", "fill_words", "read_words", "take_sample", "count_written"})
    EXPECT_THAT(x.cubin, HasSubstr(kernel));
}

} // namespace runtime_compiler_test
