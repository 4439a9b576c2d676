// The HIP side of the toolchain: hipcc in the sandbox. No GPU is needed to compile for one, and
// none is here to run what comes out.

#include <cstdlib>
#include <fstream>
#include <optional>

#include "gpu/task/task.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace hipcc_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* reverse = R"(#include <hip/hip_runtime.h>
__global__ void reverse(const float* x, float* y) {
  __shared__ float part[256];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = part[255 - threadIdx.x];
}
extern "C" void solve(const float* x, float* y) { reverse<<<1, 256>>>(x, y); }
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string read_source(const std::string& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

class hipcc : public testing::Test {
protected:
  void SetUp() override {
    if (find_hipcc().empty()) GTEST_SKIP() << "no hipcc on this machine";
    processes_.emplace(*spawner::launch(spawner_program()));
    walls_.emplace(*processes_);
    use("gfx90a");
  }

  void use(const std::string& architecture, const std::string& compiler = {}) {
    toolchain_options x;
    x.backend = "hip";
    x.architecture = architecture;
    x.compiler = compiler;
    x.cache_directory = cache_.path() + "/build";
    toolchain_.emplace(*walls_, x);
  }

  Message<wire::BuildResult> build(const std::string& source) {
    auto asked = build_request("hip", source);
    return toolchain_->build(*asked.open());
  }

  void expect_tasks_compile();

  temporary_directory cache_;
  std::optional<spawner> processes_;
  std::optional<sandbox> walls_;
  std::optional<native_toolchain> toolchain_;
};

TEST_F(hipcc, builds_a_library_and_says_what_the_kernel_needs) {
  auto built = build(reverse);
  auto x = built.open();
  ASSERT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << x->getLog().cStr();
  EXPECT_THAT(x->getToolchain().cStr(), StartsWith("hipcc "));
  EXPECT_THAT(x->getToolchain().cStr(), HasSubstr("--offload-arch=gfx90a"));
  auto library = read_whole(std::string{x->getLibraryPath()});
  ASSERT_TRUE(library);
  EXPECT_THAT(*library, StartsWith("\x7f"
                                   "ELF"));
  EXPECT_STREQ(x->getLog().cStr(), "");
  ASSERT_EQ(x->getKernels().size(), 1u);
  auto kernel = x->getKernels()[0];
  EXPECT_STREQ(kernel.getName().cStr(), "reverse(float const*, float*)");
  EXPECT_GT(kernel.getRegisters(), 0u);
  EXPECT_EQ(kernel.getSharedBytes(), 1024u);
  EXPECT_TRUE(build(reverse).open()->getCached());
}

TEST_F(hipcc, an_error_in_device_code_is_the_candidates) {
  auto built = build(replaced(reverse, "= part[", "= parts["));
  auto x = built.open();
  EXPECT_FALSE(x->getCompiled());
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CANDIDATE);
  EXPECT_STREQ(x->getFault().getCategory().cStr(), "compile_error");
  ASSERT_GE(x->getDiagnostics().size(), 1u);
  auto first = x->getDiagnostics()[0];
  EXPECT_STREQ(first.getFile().cStr(), "kernel.hip");
  EXPECT_EQ(first.getLine(), 6u);
  EXPECT_EQ(first.getColumn(), 20u);
  EXPECT_STREQ(first.getSeverity().cStr(), "error");
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("parts"));
}

TEST_F(hipcc, a_shuffle_of_cuda_is_an_error_and_not_a_guess) {
  auto built = build(
      replaced(reverse, "part[255 - threadIdx.x]", "__shfl_xor_sync(~0u, part[threadIdx.x], 1)"));
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
}

TEST_F(hipcc, more_shared_memory_than_there_is_is_the_candidates) {
  auto built = build(replaced(reverse, "part[256]", "part[65536]"));
  auto x = built.open();
  EXPECT_FALSE(x->getCompiled());
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CANDIDATE);
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("exceeds limit"));
}

TEST_F(hipcc, an_undefined_symbol_is_an_error_of_the_build) {
  auto host = build(std::string{reverse} + "void elsewhere();\nvoid f() { elsewhere(); }\n");
  EXPECT_FALSE(host.open()->getCompiled());
  EXPECT_THAT(host.open()->getFault().getMessage().cStr(), HasSubstr("elsewhere"));
  auto device =
      build("__device__ float elsewhere(float x);\n" +
            replaced(reverse, "part[255 - threadIdx.x]", "elsewhere(part[255 - threadIdx.x])"));
  EXPECT_FALSE(device.open()->getCompiled());
  EXPECT_THAT(device.open()->getFault().getMessage().cStr(), HasSubstr("elsewhere"));
  EXPECT_THAT(device.open()->getLog().cStr(), Not(HasSubstr("/tmp/")));
}

TEST_F(hipcc, the_machine_cannot_be_read_by_an_include) {
  auto built = build("#include \"/etc/passwd\"\n");
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_THAT(built.open()->getLog().cStr(), Not(HasSubstr("root:")));
}

TEST_F(hipcc, an_architecture_that_it_does_not_know_is_no_fault_of_the_candidate) {
  use("gfx1");
  auto built = build(reverse);
  auto fault = built.open()->getFault();
  EXPECT_EQ(fault.getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_STREQ(fault.getCategory().cStr(), "unsupported_architecture");
  EXPECT_THAT(fault.getMessage().cStr(), HasSubstr("gfx1"));
}

TEST_F(hipcc, one_that_is_not_there_is_the_machines_fault) {
  use("gfx90a", "/usr/bin/no-hipcc");
  auto built = build(reverse);
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_STREQ(built.open()->getFault().getCategory().cStr(), "toolchain_missing");
}

// As ROCm's own packages in /opt are: what is around its bin must be seen inside the walls.
TEST_F(hipcc, one_outside_of_usr_is_seen_with_all_of_its_folder) {
  fs::create_directories(cache_.path() + "/rocm-9/bin");
  fs::create_directories(cache_.path() + "/rocm-9/libexec");
  fs::create_symlink(find_hipcc(), cache_.path() + "/rocm-9/libexec/real");
  auto program = cache_.path() + "/rocm-9/bin/hipcc";
  std::ofstream{program} << "#!/bin/sh\nexec \"$(readlink ${0%/bin/*}/libexec/real)\" \"$@\"\n";
  fs::permissions(program, fs::perms{0755});
  fs::permissions(cache_.path(), fs::perms{0755});
  use("gfx90a", program);
  auto built = build(reverse);
  EXPECT_TRUE(built.open()->getCompiled()) << built.open()->getFault().getMessage().cStr();
}

// Every file of a task that lists hip: HIP's own where there is one, else CUDA's. Seven seconds of
// a processor each, so of every sixth task; KERNELMILL_ALL_TASKS=1 for all.
void hipcc::expect_tasks_compile() {
  const char* source_tree = std::getenv("KERNELMILL_SOURCE_DIR");
  ASSERT_NE(source_tree, nullptr) << "run by ctest";
  auto root = std::string{source_tree} + "/configs/tasks";
  auto ids = list_tasks(root);
  ASSERT_TRUE(ids) << render(ids.error());
  size_t compiled = 0, tasks = 0;
  const size_t stride = std::getenv("KERNELMILL_ALL_TASKS") == nullptr ? 6 : 1;
  for (const auto& id : *ids) {
    auto x = load_task(root, id);
    ASSERT_TRUE(x) << render(x.error());
    judging_terms terms;
    terms.backend = "hip";
    if (!on_terms(**x, terms) || tasks++ % stride != 0) continue;
    for (const std::string stem : {"reference", "baseline", "starter"}) {
      auto path = (*x)->directory + "/" + stem;
      path += fs::exists(path + ".hip") ? ".hip" : ".cu";
      // What is to be ported need not compile here.
      if (stem == "starter" && (!fs::exists(path) || (*x)->verb == "port")) continue;
      auto built = build(read_source(path));
      auto result = built.open();
      if (std::string{result->getFault().getCategory()} == "unsupported_architecture")
        GTEST_SKIP() << result->getFault().getMessage().cStr();
      EXPECT_TRUE(result->getCompiled()) << path << ": " << result->getLog().cStr();
      EXPECT_GE(result->getKernels().size(), 1u) << path;
      ++compiled;
    }
  }
  EXPECT_GE(compiled, tasks / stride * 2);
  EXPECT_GE(tasks, 12u);
}

TEST_F(hipcc, compiles_tasks_for_gfx90a) {
  expect_tasks_compile();
}

TEST_F(hipcc, compiles_tasks_for_gfx942_where_it_knows_it) {
  use("gfx942");
  expect_tasks_compile();
}

TEST(compiler_mounts, are_none_in_usr_and_the_whole_of_rocm_elsewhere) {
  EXPECT_TRUE(compiler_mounts("/usr/bin/hipcc").empty());
  EXPECT_TRUE(compiler_mounts("/usr/local/rocm/bin/hipcc").empty());
  EXPECT_TRUE(compiler_mounts("hipcc").empty());
  EXPECT_TRUE(compiler_mounts("/bin/hipcc").empty());
  auto of = [](const char* compiler) { return compiler_mounts(compiler).at(0).source; };
  EXPECT_EQ(of("/opt/rocm-6.2.0/bin/hipcc"), "/opt/rocm-6.2.0");
  EXPECT_EQ(of("/opt/rocm-5.0.0/hip/bin/hipcc"), "/opt/rocm-5.0.0");
  EXPECT_EQ(of("/home/x/hip/bin/hipcc"), "/home/x/hip");
}

TEST(find_hipcc, takes_what_the_environment_names) {
  temporary_directory root;
  fs::create_directories(root.path() + "/bin");
  auto program = fs::canonical(root.path()).string() + "/bin/hipcc";
  std::ofstream{program} << "#!/bin/sh\n";
  fs::permissions(program, fs::perms{0755});
  ::setenv("ROCM_PATH", root.path().c_str(), 1);
  EXPECT_EQ(find_hipcc(), program);
  ::setenv("HIPCC", "/usr/bin/env", 1);
  EXPECT_EQ(find_hipcc(), "/usr/bin/env");
  ::setenv("HIPCC", "/nowhere/hipcc", 1);
  EXPECT_EQ(find_hipcc(), "");
  ::unsetenv("HIPCC");
  ::unsetenv("ROCM_PATH");
}

} // namespace hipcc_test
} // namespace kernelmill
