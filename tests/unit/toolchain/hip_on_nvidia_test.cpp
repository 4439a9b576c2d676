// HIP built for NVIDIA GPUs: nvcc and NVRTC with AMD's header layer and ours; and device code for
// AMD GPUs by hipRTC. No GPU is needed to compile for one.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "gpu/task/device_artifact.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/hip_layer.hpp"
#include "gpu/toolchain/trusted_build.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace hip_on_nvidia_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* elf = "\x7f"
                            "ELF";

// With what CUDA does not know: HIP's names of threads and launches, lanes without a mask, and
// votes of 64 bits.
constexpr const char* sums = R"(#include <hip/hip_runtime.h>
__global__ void sums(const float* x, float* y, int cols) {
  float sum = 0;
  for (int j = hipThreadIdx_x; j < cols; j += 32) sum += x[size_t(hipBlockIdx_x) * cols + j];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down(sum, step, 32);
  unsigned long long first = __ballot(__lane_id() == 0);
  if (threadIdx.x == 0 && first == 1ull) y[blockIdx.x] = sum;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  void* room = nullptr;
  if (hipMalloc(&room, 256) != hipSuccess) return;
  hipLaunchKernelGGL(sums, dim3(rows), dim3(32), 0, 0, x, y, cols);
  (void)hipFree(room);
}
)";

constexpr const char* device_sums = R"(#include <hip/hip_runtime.h>
// launch: sums<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void sums(const float* x, float* y, int cols) {
  float sum = 0;
  for (int j = threadIdx.x; j < cols; j += 32) sum += x[size_t(blockIdx.x) * cols + j];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor(sum, step, 32);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
)";

std::string source_tree() {
  const char* found = std::getenv("KERNELMILL_SOURCE_DIR");
  return found == nullptr ? std::string{} : found;
}

std::string our_headers() {
  return source_tree() + "/configs/hip";
}

class hip_on_nvidia : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_NE(source_tree(), "") << "run by ctest";
    if (find_nvcc().empty()) GTEST_SKIP() << "no nvcc on this machine";
    if (auto layer = find_hip_layer(our_headers()); !layer)
      GTEST_SKIP() << "no headers of HIP on this machine: " << layer.error().message;
    processes_.emplace(*spawner::launch(spawner_program()));
    walls_.emplace(*processes_);
    use("sm_90");
  }

  void use(const std::string& architecture) {
    toolchain_options x;
    x.backend = "hip";
    x.architecture = architecture;
    x.hip_folder = our_headers();
    auto test = std::filesystem::read_symlink("/proc/self/exe");
    x.device_compiler = test.parent_path().parent_path() / "bin/kernelmill-nvrtc";
    x.cache_directory = cache_.path() + "/build";
    toolchain_.emplace(*walls_, x);
  }

  Message<wire::BuildResult> build(const char* contract, const std::string& source) {
    auto asked = kernelmill::build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
      x.setTask("row_sum");
      x.setContract(contract);
      x.setBackend("hip");
      x.setSource(source);
      x.setSha256(sha256_hex(source));
    });
    return toolchain_->build(*asked.open());
  }

  temporary_directory cache_;
  std::optional<spawner> processes_;
  std::optional<sandbox> walls_;
  std::optional<native_toolchain> toolchain_;
};

TEST_F(hip_on_nvidia, a_library_is_built_by_nvcc_and_says_what_the_kernel_needs) {
  auto built = build("native", sums);
  auto x = built.open();
  ASSERT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << x->getLog().cStr();
  EXPECT_THAT(x->getToolchain().cStr(),
              AllOf(StartsWith("nvcc "), HasSubstr("sm_90"), HasSubstr("on NVIDIA")));
  EXPECT_STREQ(x->getLog().cStr(), "");
  ASSERT_EQ(x->getKernels().size(), 1u);
  EXPECT_GT(x->getKernels()[0].getRegisters(), 0u);
}

TEST_F(hip_on_nvidia, an_error_is_the_candidates_and_names_its_line) {
  auto built = build("native", "__global__ void k() { y[0] = 1; }\n");
  auto x = built.open();
  EXPECT_FALSE(x->getCompiled());
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CANDIDATE);
  ASSERT_GE(x->getDiagnostics().size(), 1u);
  EXPECT_STREQ(x->getDiagnostics()[0].getFile().cStr(), "kernel.hip");
  EXPECT_EQ(x->getDiagnostics()[0].getLine(), 1u);
}

TEST_F(hip_on_nvidia, what_only_amd_gpus_have_is_an_error_of_the_candidate) {
  auto built =
      build("native", "__global__ void k(int* x) { *x = __builtin_amdgcn_workgroup_id_x(); }\n");
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
}

TEST_F(hip_on_nvidia, device_code_is_built_by_nvrtc) {
  auto built = build("device", device_sums);
  auto x = built.open();
  ASSERT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << x->getLog().cStr();
  EXPECT_THAT(x->getToolchain().cStr(), AllOf(StartsWith("NVRTC "), HasSubstr("on NVIDIA")));
  auto artifact = read_whole(std::string{x->getLibraryPath()});
  ASSERT_TRUE(artifact);
  auto made = unpack_device_artifact(*artifact);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->cubin, StartsWith(elf));
}

TEST_F(hip_on_nvidia, device_code_for_an_amd_gpu_is_built_by_hiprtc) {
  use("gfx90a");
  if (auto works = toolchain_->probe(contract_kind::device); !works)
    GTEST_SKIP() << "no hipRTC here: " << render(works.error());
  auto built = build("device", device_sums);
  auto x = built.open();
  ASSERT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << x->getLog().cStr();
  EXPECT_THAT(x->getToolchain().cStr(), AllOf(StartsWith("hipRTC "), HasSubstr("gfx90a")));
}

TEST_F(hip_on_nvidia, both_controls_are_built) {
  EXPECT_TRUE(toolchain_->probe(contract_kind::native));
  EXPECT_TRUE(toolchain_->probe(contract_kind::device));
}

TEST_F(hip_on_nvidia, what_a_task_brings_is_built_with_the_same_headers) {
  temporary_directory folder;
  auto path = folder.path() + "/baseline.hip";
  std::ofstream{path} << sums;
  trusted_builder builder{*processes_, folder.path() + "/cache", {"hip", "sm_90", our_headers()}};
  auto built = builder.build(path);
  ASSERT_TRUE(built) << render(built.error());
  EXPECT_EQ(*builder.build(path), *built);
}

TEST(hip_layer, that_is_not_installed_is_told_with_a_next_step) {
  temporary_directory empty;
  auto x = find_hip_layer(empty.path());
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "toolchain_missing");
  EXPECT_THAT(x.error().message, HasSubstr("kernelmill_hip.h"));
  EXPECT_THAT(x.error().hint, HasSubstr("KERNELMILL_HOME"));
}

TEST(hip_layer, of_the_environment_comes_first_and_tells_its_version) {
  namespace fs = std::filesystem;
  temporary_directory root;
  fs::create_directories(root.path() + "/include/hip/nvidia_detail");
  std::ofstream{root.path() + "/include/hip/nvidia_detail/nvidia_hip_runtime.h"};
  std::ofstream{root.path() + "/include/hip/hip_version.h"}
      << "#define HIP_VERSION_MAJOR 7\n#define HIP_VERSION_MINOR 1\n";
  ::setenv("HIP_PATH", root.path().c_str(), 1);
  auto x = find_hip_layer(our_headers());
  ::unsetenv("HIP_PATH");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->version, "7.1");
  EXPECT_EQ(x->headers, fs::canonical(root.path() + "/include").string());
  EXPECT_THAT(nvcc_flags(*x), testing::Contains(x->headers));
  EXPECT_EQ(mounts_of(*x).size(), 2u);
  auto none = layer_of({"cuda", "sm_90", our_headers()});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  EXPECT_FALSE(layer_of({"hip", "gfx90a", {}})->has_value());
}

} // namespace hip_on_nvidia_test
} // namespace kernelmill
