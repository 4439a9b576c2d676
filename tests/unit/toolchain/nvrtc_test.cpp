// The contract `device`: NVRTC in the sandbox, by kernelmill-nvrtc. No GPU is needed to compile for
// one.

#include <cstdlib>
#include <fstream>
#include <optional>

#include <unistd.h>

#include "gpu/task/device_artifact.hpp"
#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace nvrtc_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* elf = "\x7f"
                            "ELF";

constexpr const char* row_sum = R"(// launch: row_sum<<<rows, 256>>>(x, y, cols)
extern "C" __global__ void row_sum(const float* x, float* y, int cols) {
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
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string nvrtc_program() {
  auto test = std::filesystem::read_symlink("/proc/self/exe");
  return test.parent_path().parent_path() / "bin/kernelmill-nvrtc";
}

// A file that only a permitted process can read, with a text that no candidate may see.
class secret_file {
public:
  explicit secret_file(const std::string& folder) {
    auto name = folder + "/kernelmill-secret-XXXXXX";
    int file = ::mkstemp(name.data());
    if (file < 0) return;
    ::close(file);
    path_ = name;
    std::ofstream{path_} << "#error open sesame\n";
    std::filesystem::permissions(path_, std::filesystem::perms{0644});
  }
  ~secret_file() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  secret_file(const secret_file&) = delete;
  secret_file& operator=(const secret_file&) = delete;
  const std::string& path() const { return path_; } // empty: the folder cannot be written

private:
  std::string path_;
};

class nvrtc : public testing::Test {
protected:
  using result = Message<wire::BuildResult>;

  void SetUp() override {
    // Before the spawner starts, so that it could hand the name on.
    ::setenv("KERNELMILL_TEST_SECRET", "open sesame", 1);
    processes_.emplace(*spawner::launch(spawner_program()));
    ::unsetenv("KERNELMILL_TEST_SECRET");
    walls_.emplace(*processes_);
    auto facts = ask_nvrtc(*walls_, nvrtc_program(), "sm_90");
    if (!facts && facts.error().category == "toolchain_missing")
      GTEST_SKIP() << "no NVRTC on this machine: " << facts.error().message;
    ASSERT_TRUE(facts) << render(facts.error());
    use(options());
  }

  toolchain_options options() {
    toolchain_options x;
    x.backend = "cuda";
    x.device_compiler = nvrtc_program();
    x.cache_directory = cache_.path() + "/build";
    return x;
  }

  void use(const toolchain_options& x) { toolchain_.emplace(*walls_, x); }

  result build(const std::string& source, uint32_t deadline_ms = 0) {
    return build_as("device", "cuda", source, deadline_ms);
  }

  result build_as(const char* contract, const char* backend, const std::string& source,
                  uint32_t deadline_ms = 0) {
    auto asked = kernelmill::build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
      x.setTask("row_sum");
      x.setContract(contract);
      x.setBackend(backend);
      x.setSource(source);
      x.setSha256(sha256_hex(source));
      x.setDeadlineMs(deadline_ms);
    });
    return toolchain_->build(*asked.open());
  }

  void expect_built(const std::string& source) {
    auto built = build(source);
    auto x = built.open();
    EXPECT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << '\n'
                                  << x->getLog().cStr();
  }

  static void expect_fault(const result& built, wire::FaultClass cls, const char* category) {
    auto x = built.open();
    EXPECT_FALSE(x->getCompiled());
    EXPECT_EQ(x->getFault().getClass(), cls) << x->getFault().getMessage().cStr();
    EXPECT_STREQ(x->getFault().getCategory().cStr(), category) << x->getFault().getMessage().cStr();
    EXPECT_LE(x->getLog().size(), size_t{16} << 10);
  }

  temporary_directory cache_;
  std::optional<spawner> processes_;
  std::optional<sandbox> walls_;
  std::optional<native_toolchain> toolchain_;
};

// -- what it makes --------------------------------------------------------------------------------

TEST_F(nvrtc, makes_an_artifact_of_source_and_cubin_and_says_what_the_kernel_needs) {
  auto built = build(row_sum);
  auto x = built.open();
  ASSERT_TRUE(x->getCompiled()) << x->getFault().getMessage().cStr() << x->getLog().cStr();
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
  EXPECT_THAT(x->getToolchain().cStr(),
              AllOf(StartsWith("NVRTC "), HasSubstr("-std=c++20"), HasSubstr("-arch=sm_90")));
  EXPECT_STREQ(x->getLog().cStr(), "");
  EXPECT_FALSE(x->getCached());
  auto bytes = read_whole(std::string{x->getLibraryPath()});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(sha256_hex(*bytes), x->getLibrarySha256().cStr());
  auto artifact = unpack_device_artifact(*bytes);
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->source, row_sum);
  EXPECT_THAT(artifact->cubin, AllOf(StartsWith(elf), HasSubstr("row_sum")));
  ASSERT_EQ(x->getKernels().size(), 1u);
  auto kernel = x->getKernels()[0];
  EXPECT_STREQ(kernel.getName().cStr(), "row_sum");
  EXPECT_GT(kernel.getRegisters(), 0u);
  EXPECT_LT(kernel.getRegisters(), 64u);
  EXPECT_EQ(kernel.getSharedBytes(), 1024u);
  EXPECT_EQ(kernel.getSpillStores(), 0u);
  EXPECT_GT(kernel.getOccupancy(), 0);
}

TEST_F(nvrtc, takes_the_second_build_from_the_cache) {
  auto first = build(row_sum);
  auto second = build(row_sum);
  ASSERT_TRUE(second.open()->getCompiled());
  EXPECT_TRUE(second.open()->getCached());
  EXPECT_STREQ(second.open()->getLibrarySha256().cStr(), first.open()->getLibrarySha256().cStr());
  EXPECT_EQ(second.open()->getKernels().size(), 1u);
  auto broken = replaced(row_sum, "part[0]", "parts[0]");
  EXPECT_FALSE(build(broken).open()->getCached());
  EXPECT_TRUE(build(broken).open()->getCached());
  // A launch line is part of the source: another one, another artifact.
  auto other = build(replaced(row_sum, "<<<rows, 256>>>", "<<<rows, 128>>>"));
  EXPECT_FALSE(other.open()->getCached());
  EXPECT_STRNE(other.open()->getLibrarySha256().cStr(), first.open()->getLibrarySha256().cStr());
}

TEST_F(nvrtc, of_another_architecture_is_another_artifact) {
  auto hopper = build(row_sum);
  auto x = options();
  x.architecture = "sm_80";
  use(x);
  auto ampere = build(row_sum);
  ASSERT_TRUE(ampere.open()->getCompiled()) << ampere.open()->getLog().cStr();
  EXPECT_FALSE(ampere.open()->getCached());
  EXPECT_STRNE(ampere.open()->getLibrarySha256().cStr(), hopper.open()->getLibrarySha256().cStr());
}

TEST_F(nvrtc, a_source_of_both_contracts_is_two_things_in_the_cache) {
  if (find_nvcc().empty()) GTEST_SKIP() << "no nvcc on this machine";
  auto both =
      std::string{row_sum} + "\n#ifndef __CUDACC_RTC__\nextern \"C\" void solve() {}\n#endif\n";
  auto device = build(both);
  auto native = build_as("native", "cuda", both);
  ASSERT_TRUE(device.open()->getCompiled()) << device.open()->getLog().cStr();
  ASSERT_TRUE(native.open()->getCompiled()) << native.open()->getLog().cStr();
  EXPECT_FALSE(native.open()->getCached());
  EXPECT_STRNE(native.open()->getLibraryPath().cStr(), device.open()->getLibraryPath().cStr());
}

TEST_F(nvrtc, finds_the_device_headers_of_cuda) {
  expect_built("// launch: f<<<1, 32>>>(y)\n#include <cuda_fp16.h>\n"
               "extern \"C\" __global__ void f(float* y) {\n"
               "  y[threadIdx.x] = __half2float(__float2half(2.0f) * __float2half(3.0f));\n}\n");
  expect_built("// launch: f<<<1, 32>>>(y)\n#include <cooperative_groups.h>\n"
               "#include <cooperative_groups/reduce.h>\n"
               "namespace cg = cooperative_groups;\n"
               "extern \"C\" __global__ void f(float* y) {\n"
               "  auto warp = cg::tiled_partition<32>(cg::this_thread_block());\n"
               "  float sum = cg::reduce(warp, y[threadIdx.x], cg::plus<float>{});\n"
               "  if (warp.thread_rank() == 0) y[0] = sum;\n}\n");
  expect_built("// launch: f<<<1, 32>>>(y)\n#include <mma.h>\n#include <cuda_bf16.h>\n"
               "extern \"C\" __global__ void f(float* y) {\n"
               "  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;\n"
               "  nvcuda::wmma::fill_fragment(c, 1.0f);\n"
               "  nvcuda::wmma::store_matrix_sync(y, c, 16, nvcuda::wmma::mem_row_major);\n}\n");
}

// -- what is the candidate's fault ----------------------------------------------------------------

TEST_F(nvrtc, an_error_has_file_and_line) {
  auto built = build(replaced(row_sum, "part[0]", "parts[0]"));
  expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
  auto x = built.open();
  ASSERT_GE(x->getDiagnostics().size(), 1u);
  auto first = x->getDiagnostics()[0];
  EXPECT_STREQ(first.getFile().cStr(), "kernel.cu");
  EXPECT_EQ(first.getLine(), 12u);
  EXPECT_STREQ(first.getSeverity().cStr(), "error");
  EXPECT_THAT(first.getMessage().cStr(), HasSubstr("\"parts\" is undefined"));
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("kernel.cu:12: "));
  EXPECT_THAT(x->getLog().cStr(), HasSubstr("kernel.cu(12)"));
  EXPECT_STREQ(x->getLibraryPath().cStr(), "");
}

TEST_F(nvrtc, a_warning_is_kept_and_is_no_error) {
  auto built = build(replaced(row_sum, "float sum = 0;", "float sum = 0; int unused = 3;"));
  auto x = built.open();
  EXPECT_TRUE(x->getCompiled());
  ASSERT_GE(x->getDiagnostics().size(), 1u) << x->getLog().cStr();
  EXPECT_STREQ(x->getDiagnostics()[0].getSeverity().cStr(), "warning");
  EXPECT_EQ(x->getDiagnostics()[0].getLine(), 4u);
}

TEST_F(nvrtc, host_code_is_an_error) {
  expect_fault(build(std::string{row_sum} + "#include <cstdio>\n#include <unistd.h>\n"),
               wire::FaultClass::CANDIDATE, "compile_error");
  expect_fault(build(std::string{row_sum} +
                     "extern \"C\" void solve(float* x) { row_sum<<<1, 1>>>(x, x, 1); }\n"),
               wire::FaultClass::CANDIDATE, "compile_error");
}

TEST_F(nvrtc, more_shared_memory_than_there_is_is_the_candidates) {
  auto built = build(replaced(row_sum, "part[256]", "part[65536]"));
  expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("shared"));
}

TEST_F(nvrtc, a_header_that_there_is_not_is_named_with_its_line) {
  auto built = build(std::string{row_sum} + "#include <torch/extension.h>\n");
  expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
  ASSERT_GE(built.open()->getDiagnostics().size(), 1u) << built.open()->getLog().cStr();
  EXPECT_EQ(built.open()->getDiagnostics()[0].getLine(), 14u);
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(),
              AllOf(HasSubstr("kernel.cu:14: "), HasSubstr("torch/extension.h")));
}

TEST_F(nvrtc, an_instruction_that_there_is_not_is_told) {
  auto built = build(replaced(row_sum, "float sum = 0;", "float sum = 0; asm(\"foo.f32;\");"));
  expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("instruction: 'foo'"));
}

TEST_F(nvrtc, an_undefined_function_is_an_error_of_the_build) {
  auto built = build(std::string{row_sum} + "__device__ float elsewhere(float);\n"
                                            "extern \"C\" __global__ void g(float* y) {"
                                            " y[0] = elsewhere(y[1]); }\n");
  expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("elsewhere"));
}

TEST_F(nvrtc, a_bad_launch_line_is_told_before_any_compiler_runs) {
  // A compiler that cannot be run would be the machine's fault.
  auto x = options();
  x.device_compiler = "/nowhere/kernelmill-nvrtc";
  use(x);
  for (auto [from, to] : {std::pair{"<<<rows, 256>>>", "<<<rows>>>"},
                          {"<<<rows, 256>>>", "<<<rows, 256"},
                          {"(x, y, cols)\n", "(x, y, cols\n"},
                          {"// launch: ", "// scratch: s[4\n// launch: "}}) {
    auto built = build(replaced(row_sum, from, to));
    expect_fault(built, wire::FaultClass::CANDIDATE, "bad_launch");
    EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("line 1: ")) << to;
    EXPECT_NE(built.open()->getFault().getHint(), "") << to;
  }
  expect_fault(build(replaced(row_sum, "// launch", "// lunch")), wire::FaultClass::CANDIDATE,
               "bad_launch");
  expect_fault(build(row_sum), wire::FaultClass::INFRASTRUCTURE, "toolchain_missing");
}

TEST_F(nvrtc, a_source_that_is_too_long_is_refused) {
  expect_fault(build(row_sum + std::string(1 << 20, ' ')), wire::FaultClass::CANDIDATE,
               "compile_error");
}

TEST_F(nvrtc, noise_is_an_error) {
  const std::string launch = "// launch: f<<<1, 1>>>()\n";
  expect_fault(build(launch + "\x01\x02\xff\xfe #include \x80"), wire::FaultClass::CANDIDATE,
               "compile_error");
  expect_fault(build(launch + "#include __FILE__\n"), wire::FaultClass::CANDIDATE, "compile_error");
}

const std::string bomb =
    "// launch: f<<<1, 1>>>(y)\n"
    "template <int D, int I> struct s {\n"
    "  static constexpr long v = s<D - 1, 2 * I>::v + s<D - 1, 2 * I + 1>::v;\n"
    "};\ntemplate <int I> struct s<0, I> { static constexpr long v = I; };\n"
    "extern \"C\" __global__ void f(long* y) { y[0] = s<29, 1>::v; }\n";

TEST_F(nvrtc, a_source_without_an_end_runs_out_of_time) {
  auto first = build(bomb, 2'000);
  // A compiler that had no core has not used its time up.
  for (int i = 0; i < 5 && first.open()->getFault().getCategory() == "machine_busy"; ++i)
    first = build(bomb, 2'000);
  expect_fault(first, wire::FaultClass::CANDIDATE, "compile_timeout");
  // Unless this machine was so busy that the wall deadline came first.
  if (first.open()->getSeconds() < 2) {
    EXPECT_TRUE(build(bomb, 2'000).open()->getCached());
  }
  expect_built(row_sum);
}

TEST_F(nvrtc, a_source_that_takes_too_much_runs_out_of_memory) {
  auto x = options();
  x.memory_bytes = uint64_t{768} << 20;
  use(x);
  expect_fault(build(bomb), wire::FaultClass::CANDIDATE, "compile_memory");
  expect_built(row_sum);
}

// -- the walls ------------------------------------------------------------------------------------

TEST_F(nvrtc, cannot_read_files_of_this_machine) {
  for (auto* line :
       {"#include </etc/shadow>", "#include \"/etc/passwd\"", "#include \"/root/.bashrc\"",
        "#include </root/.ssh/id_ed25519>", "#include \"../etc/hostname\"",
        "#if __has_include(\"/etc/passwd\") || __has_include(\"/root/.bashrc\")\n#else\n#error "
        "none\n#endif",
        "extern \"C\" __global__ void g() { asm volatile(\".include \\\"/etc/passwd\\\"\"); }"}) {
    auto built = build(std::string{row_sum} + line + "\n");
    expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
    EXPECT_THAT(built.open()->getLog().cStr(), Not(HasSubstr("root:"))) << line;
  }
  // Outside of functions it is for the host, which has no part in this.
  auto built = build(std::string{row_sum} + "asm(\".incbin \\\"/etc/passwd\\\"\");\n");
  if (built.open()->getCompiled()) {
    EXPECT_THAT(*read_whole(std::string{built.open()->getLibraryPath()}),
                Not(HasSubstr("root:x:")));
  }
}

TEST_F(nvrtc, cannot_read_what_others_on_this_machine_wrote) {
  const char* home = std::getenv("HOME");
  size_t tried = 0;
  for (const auto& folder :
       {std::string{home != nullptr ? home : "/root"}, cache_.path(), std::string{"/tmp"},
        std::string{"/var/tmp"}, std::string{"/dev/shm"}}) {
    secret_file secret{folder};
    if (secret.path().empty()) continue;
    ++tried;
    auto built = build(std::string{row_sum} + "#include \"" + secret.path() + "\"\n");
    expect_fault(built, wire::FaultClass::CANDIDATE, "compile_error");
    EXPECT_THAT(built.open()->getLog().cStr(), Not(HasSubstr("open sesame"))) << folder;
  }
  EXPECT_GT(tried, 0u);
}

TEST_F(nvrtc, finds_an_environment_without_secrets) {
  for (auto* line : {"#include \"/proc/self/environ\"", "#include \"/proc/1/environ\"",
                     "#include \"/proc/self/cmdline\"", "#include </proc/self/mounts>"}) {
    auto built = build(std::string{row_sum} + line + "\n");
    auto x = built.open();
    EXPECT_THAT(x->getLog().cStr(), Not(HasSubstr("sesame"))) << line;
    for (auto text : {x->getLog().cStr(), x->getFault().getMessage().cStr()})
      EXPECT_THAT(text, AllOf(Not(HasSubstr("KERNELMILL_")), Not(HasSubstr("HOME=")))) << line;
  }
}

// -- what is not the candidate's ------------------------------------------------------------------

TEST_F(nvrtc, builds_for_cuda_and_for_nothing_else) {
  expect_fault(build_as("device", "cpu", row_sum), wire::FaultClass::INFRASTRUCTURE,
               "unsupported_contract");
  expect_fault(build_as("device", "hip", row_sum), wire::FaultClass::INFRASTRUCTURE,
               "unsupported_contract");
  expect_fault(build_as("Device", "cuda", row_sum), wire::FaultClass::INFRASTRUCTURE,
               "unsupported_contract");
  auto x = options();
  x.device_compiler.clear();
  use(x);
  auto built = build(row_sum);
  expect_fault(built, wire::FaultClass::INFRASTRUCTURE, "unsupported_contract");
}

TEST(device_contract, on_a_cpu_toolchain_is_unsupported) {
  temporary_directory cache;
  auto processes = spawner::launch(spawner_program());
  ASSERT_TRUE(processes) << render(processes.error());
  sandbox walls{*processes};
  toolchain_options x;
  x.device_compiler = nvrtc_program();
  x.cache_directory = cache.path() + "/build";
  native_toolchain toolchain{walls, x};
  auto asked = build<wire::BuildRequest>([&](wire::BuildRequest::Builder b) {
    b.setTask("row_sum");
    b.setContract("device");
    b.setBackend("cpu");
    b.setSource(row_sum);
  });
  auto built = toolchain.build(*asked.open());
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_STREQ(built.open()->getFault().getCategory().cStr(), "unsupported_contract");
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(),
              AllOf(HasSubstr("contract \"device\""),
                    HasSubstr("builds \"native\" and \"program\" for \"cpu\"")));
}

} // namespace nvrtc_test
} // namespace kernelmill
