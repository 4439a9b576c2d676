#include "gpu/toolchain/toolchain.hpp"

#include <atomic>
#include <fstream>
#include <thread>

#include <sys/stat.h>

#include "gpu/toolchain/build_cache.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace toolchain_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The libraries are never loaded here: constructors run at dlopen, and this is no sandbox.
constexpr const char* row_sum = R"(#include <cstddef>
extern "C" void solve(const float* x, float* y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < cols; ++c) sum += x[static_cast<size_t>(r) * cols + c];
    y[r] = sum;
  }
}
)";

class a_toolchain : public toolchain_fixture {};

TEST_F(a_toolchain, builds_a_kernel_into_a_library) {
  auto built = build(row_sum);
  auto view = built.open();
  ASSERT_TRUE(view->getCompiled()) << view->getLog().cStr();
  EXPECT_EQ(view->getFault().getClass(), wire::FaultClass::NONE);
  EXPECT_FALSE(view->getCached());
  EXPECT_GT(view->getSeconds(), 0);
  auto library = read_whole(std::string{view->getLibraryPath()});
  ASSERT_TRUE(library);
  EXPECT_THAT(*library, StartsWith("\x7f"
                                   "ELF"));
  EXPECT_THAT(*library, HasSubstr("libgomp.so"));
  EXPECT_EQ(sha256_hex(*library), view->getLibrarySha256().cStr());
  EXPECT_THAT(view->getToolchain().cStr(), HasSubstr("-O3 -march=native -fopenmp"));
  EXPECT_EQ(toolchain_.identity(), view->getToolchain().cStr());
}

TEST_F(a_toolchain, serves_the_same_source_from_its_cache) {
  auto first = build(row_sum);
  auto second = build(row_sum);
  EXPECT_TRUE(second.open()->getCached());
  EXPECT_STREQ(first.open()->getLibraryPath().cStr(), second.open()->getLibraryPath().cStr());
  native_toolchain other{walls_, options()};
  auto asked = request(row_sum);
  EXPECT_TRUE(other.build(*asked.open()).open()->getCached());
}

TEST_F(a_toolchain, builds_again_what_was_damaged) {
  auto first = build(row_sum);
  std::string path = first.open()->getLibraryPath();
  ::chmod(path.c_str(), 0600);
  std::ofstream{path, std::ios::app} << "x";
  auto second = build(row_sum);
  EXPECT_TRUE(second.open()->getCompiled());
  EXPECT_FALSE(second.open()->getCached());
  EXPECT_EQ(sha256_hex(*read_whole(path)), second.open()->getLibrarySha256().cStr());
}

TEST_F(a_toolchain, gives_other_flags_another_entry) {
  build(row_sum);
  auto changed = options();
  changed.extra_flags = {"-ffast-math"};
  native_toolchain other{walls_, changed};
  auto asked = request(row_sum);
  auto built = other.build(*asked.open());
  EXPECT_TRUE(built.open()->getCompiled());
  EXPECT_FALSE(built.open()->getCached());
  EXPECT_THAT(other.identity(), HasSubstr("-ffast-math"));
}

TEST_F(a_toolchain, precompiles_headers_once_and_uses_them) {
  std::string source = "#include <vector>\n#include <immintrin.h>\n"
                       "extern \"C\" int solve() { return (int)std::vector<int>(3).size(); }\n";
  auto built = build(source);
  ASSERT_TRUE(built.open()->getCompiled()) << built.open()->getLog().cStr();
  int headers = 0;
  for (auto& x : std::filesystem::directory_iterator{cache_.path() + "/build"}) {
    auto name = x.path().filename().string();
    if (!name.starts_with("headers-")) continue;
    ++headers;
    EXPECT_EQ(name.find('.'), name.npos) << "unfinished";
    EXPECT_GT(std::filesystem::file_size(x.path() / "kernelmill.hpp.gch"), 1u << 20);
  }
  EXPECT_EQ(headers, 1);
  // A kernel whose own name is also one of omp.h, which it did not include.
  built =
      build("#include <cmath>\nstatic int omp_get_max_threads(float x) { return (int)x; }\n"
            "struct omp_lock_t {};\nextern \"C\" int solve() { return omp_get_max_threads(2); }\n");
  EXPECT_TRUE(built.open()->getCompiled()) << built.open()->getLog().cStr();
}

TEST_F(a_toolchain, reports_errors_with_file_line_and_column) {
  auto built = build("extern \"C\" void solve(float* y) {\n  y[0] = z;\n}\n");
  auto view = built.open();
  EXPECT_FALSE(view->getCompiled());
  EXPECT_EQ(view->getFault().getClass(), wire::FaultClass::CANDIDATE);
  EXPECT_STREQ(view->getFault().getCategory().cStr(), "compile_error");
  EXPECT_THAT(view->getFault().getMessage().cStr(), HasSubstr("kernel.cpp:2"));
  ASSERT_GE(view->getDiagnostics().size(), 1u);
  auto first = view->getDiagnostics()[0];
  EXPECT_STREQ(first.getFile().cStr(), "kernel.cpp");
  EXPECT_EQ(first.getLine(), 2u);
  EXPECT_EQ(first.getColumn(), 10u);
  EXPECT_STREQ(first.getSeverity().cStr(), "error");
  EXPECT_THAT(view->getLog().cStr(), HasSubstr("kernel.cpp:2:10: error:"));
  EXPECT_THAT(view->getLog().cStr(), Not(HasSubstr("/build")));
  EXPECT_TRUE(build("extern \"C\" void solve(float* y) {\n  y[0] = z;\n}\n").open()->getCached());
}

TEST_F(a_toolchain, reports_undefined_symbols_at_build_time) {
  auto built = build("void missing(); extern \"C\" void solve() { missing(); }\n");
  auto view = built.open();
  EXPECT_FALSE(view->getCompiled());
  EXPECT_THAT(view->getFault().getMessage().cStr(), HasSubstr("undefined reference to"));
}

TEST_F(a_toolchain, keeps_warnings_of_a_kernel_that_compiles) {
  auto built =
      build("extern \"C\" int solve() { int x[2] = {1, 2}; return x[5]; }\n#warning slow\n");
  auto view = built.open();
  EXPECT_TRUE(view->getCompiled());
  ASSERT_GE(view->getDiagnostics().size(), 1u);
  EXPECT_STREQ(view->getDiagnostics()[0].getSeverity().cStr(), "warning");
}

TEST_F(a_toolchain, builds_an_empty_source_into_an_empty_library) {
  EXPECT_TRUE(build("").open()->getCompiled());
}

TEST_F(a_toolchain, serves_many_threads) {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      // Two sources, four threads: some build the same at once.
      auto built = build("extern \"C\" int solve() { return " + std::to_string(i % 2) + "; }");
      auto view = built.open();
      auto library = read_whole(std::string{view->getLibraryPath()});
      if (library && sha256_hex(*library) == view->getLibrarySha256().cStr()) ++right;
    });
  for (auto& x : threads) x.join();
  EXPECT_EQ(right, 4);
}

TEST_F(a_toolchain, without_a_compiler_is_an_infrastructure_fault_with_a_remedy) {
  auto missing = options();
  missing.compiler = "/usr/bin/no-such-compiler";
  native_toolchain other{walls_, missing};
  auto asked = request(row_sum);
  auto built = other.build(*asked.open());
  auto fault = built.open()->getFault();
  EXPECT_FALSE(built.open()->getCompiled());
  EXPECT_EQ(fault.getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_STREQ(fault.getCategory().cStr(), "toolchain_missing");
  EXPECT_THAT(fault.getMessage().cStr(), HasSubstr("/usr/bin/no-such-compiler"));
  EXPECT_THAT(fault.getHint().cStr(), HasSubstr("apt install"));
}

TEST_F(a_toolchain, with_a_program_that_is_no_compiler_is_an_infrastructure_fault) {
  auto wrong = options();
  wrong.compiler = "/usr/bin/false";
  native_toolchain other{walls_, wrong};
  auto asked = request(row_sum);
  EXPECT_STREQ(other.build(*asked.open()).open()->getFault().getCategory().cStr(),
               "toolchain_missing");
}

TEST_F(a_toolchain, refuses_contracts_that_it_does_not_know) {
  auto asked = kernelmill::build<wire::BuildRequest>([](wire::BuildRequest::Builder x) {
    x.setContract("device");
    x.setBackend("cuda");
  });
  auto built = toolchain_.build(*asked.open());
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_STREQ(built.open()->getFault().getCategory().cStr(), "unsupported_contract");
}

TEST_F(a_toolchain, without_a_writable_cache_is_an_infrastructure_fault) {
  auto wrong = options();
  wrong.cache_directory = "/proc/nowhere/build";
  native_toolchain other{walls_, wrong};
  auto asked = request(row_sum);
  auto built = other.build(*asked.open());
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_STREQ(built.open()->getFault().getCategory().cStr(), "cache_unwritable");
}

} // namespace toolchain_test
} // namespace kernelmill
