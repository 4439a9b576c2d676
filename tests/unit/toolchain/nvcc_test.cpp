// The CUDA side of the toolchain: nvcc in the sandbox. No GPU is needed to compile for one.

#include <optional>

#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace nvcc_test {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* row_sum = R"(#include <cuda_runtime.h>
__global__ void row_sum(const float* x, float* y, int cols) {
  __shared__ float part[256];
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 256) sum += x[size_t(blockIdx.x) * cols + c];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int n = 128; n > 0; n /= 2) {
    if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  row_sum<<<rows, 256>>>(x, y, cols);
}
)";

class nvcc : public testing::Test {
protected:
  void SetUp() override {
    if (find_nvcc().empty()) GTEST_SKIP() << "no nvcc on this machine";
    processes_.emplace(*spawner::launch(spawner_program()));
    walls_.emplace(*processes_);
    toolchain_options x;
    x.backend = "cuda";
    x.cache_directory = cache_.path() + "/build";
    toolchain_.emplace(*walls_, x);
  }

  Message<wire::BuildResult> build(const std::string& source) {
    auto asked = build_request("cuda", source);
    return toolchain_->build(*asked.open());
  }

  temporary_directory cache_;
  std::optional<spawner> processes_;
  std::optional<sandbox> walls_;
  std::optional<native_toolchain> toolchain_;
};

TEST_F(nvcc, builds_a_library_and_says_what_the_kernel_needs) {
  auto built = build(row_sum);
  auto x = built.open();
  ASSERT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << x->getLog().cStr();
  EXPECT_THAT(x->getToolchain().cStr(), HasSubstr("-arch=sm_90"));
  auto library = read_whole(std::string{x->getLibraryPath()});
  ASSERT_TRUE(library);
  EXPECT_THAT(*library, StartsWith("\x7f"
                                   "ELF"));
  EXPECT_STREQ(x->getLog().cStr(), "");
  ASSERT_EQ(x->getKernels().size(), 1u);
  auto kernel = x->getKernels()[0];
  EXPECT_STREQ(kernel.getName().cStr(), "row_sum(float const*, float*, int)");
  EXPECT_GT(kernel.getRegisters(), 0u);
  EXPECT_EQ(kernel.getSharedBytes(), 1024u);
  EXPECT_TRUE(build(row_sum).open()->getCached());
}

TEST_F(nvcc, an_error_in_device_code_is_the_candidates) {
  std::string source = row_sum;
  source.replace(source.find("part[0]"), 7, "parts[0]");
  auto built = build(source);
  auto x = built.open();
  EXPECT_FALSE(x->getCompiled());
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CANDIDATE);
  EXPECT_STREQ(x->getFault().getCategory().cStr(), "compile_error");
  ASSERT_GE(x->getDiagnostics().size(), 1u);
  EXPECT_STREQ(x->getDiagnostics()[0].getFile().cStr(), "kernel.cu");
  EXPECT_EQ(x->getDiagnostics()[0].getLine(), 12u);
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("parts"));
}

TEST_F(nvcc, more_shared_memory_than_there_is_is_the_candidates) {
  std::string source = row_sum;
  source.replace(source.find("part[256]"), 9, "part[65536]");
  auto built = build(source);
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("shared"));
}

TEST_F(nvcc, an_undefined_symbol_is_an_error_of_the_build) {
  auto built = build(std::string{row_sum} + "void elsewhere();\nvoid f() { elsewhere(); }\n");
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("elsewhere"));
}

TEST_F(nvcc, an_architecture_that_it_does_not_know_is_no_fault_of_the_candidate) {
  toolchain_options x;
  x.backend = "cuda";
  x.architecture = "sm_999";
  x.cache_directory = cache_.path() + "/build";
  toolchain_.emplace(*walls_, x);
  auto built = build(row_sum);
  auto fault = built.open()->getFault();
  EXPECT_EQ(fault.getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_STREQ(fault.getCategory().cStr(), "unsupported_architecture");
  EXPECT_THAT(fault.getMessage().cStr(), HasSubstr("sm_999"));
}

TEST_F(nvcc, the_machine_cannot_be_read_by_an_include) {
  auto built = build("#include \"/etc/passwd\"\n");
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_THAT(built.open()->getLog().cStr(), testing::Not(HasSubstr("root:")));
}

} // namespace nvcc_test
} // namespace kernelmill
