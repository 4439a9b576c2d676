// Machines that are not well: a compiler of ours says what g++ says on them. Nothing of that is the
// candidate's, and none of it is remembered.

#include <filesystem>
#include <fstream>

#include "messages/base/files.hpp"
#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace toolchain_faults_test {

using testing::HasSubstr;

constexpr const char* plain =
    "#include <cstddef>\nextern \"C\" void solve(const float* x, float* y, "
    "int n, int) { y[0] = x[n]; }\n";
constexpr const char* wrong = "extern \"C\" void solve(float* y) {\n  y[0] = z;\n}\n";

// What it says lies beside it; without that it is g++. "once" says it to the candidate alone.
constexpr const char* wrapper = R"(#!/bin/sh
here=${0%/*}
case " $* " in *" -### "* | *" -dumpfullversion "* | *" -print-file-name"*) exec /usr/bin/g++ "$@" ;; esac
if [ -s "$here/says" ]; then
  if [ ! -e "$here/once" ] || ! grep -q kernelmill_control kernel.cpp; then
    cat "$here/says" >&2
    exit 1
  fi
fi
exec /usr/bin/g++ "$@"
)";

class a_machine_that_is_not_well : public toolchain_fixture {
protected:
  a_machine_that_is_not_well() {
    std::filesystem::create_directories(machine_.path() + "/bin");
    std::filesystem::permissions(machine_.path(), std::filesystem::perms{0755});
    std::ofstream{compiler()} << wrapper;
    std::filesystem::permissions(compiler(), std::filesystem::perms{0755});
    auto x = options();
    x.compiler = compiler();
    ill_.emplace(walls_, x);
  }

  std::string compiler() const { return machine_.path() + "/bin/g++"; }
  void says(const std::string& text) { std::ofstream{machine_.path() + "/bin/says"} << text; }
  void spares_controls() { std::ofstream{machine_.path() + "/bin/once"} << "x"; }
  result build_ill(const std::string& source) {
    auto asked = request(source);
    return ill_->build(*asked.open());
  }
  static std::string category(const result& x) { return x.open()->getFault().getCategory(); }

  temporary_directory machine_;
  std::optional<native_toolchain> ill_;
};

constexpr const char* faults[] = {
    "kernel.cpp: fatal error: error writing to /tmp/cc.s: No space left on device\n",
    "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes\n",
    "kernel.cpp:1:10: fatal error: cstddef: No such file or directory\ncompilation terminated.\n",
    "g++: fatal error: Killed signal terminated program cc1plus\n",
    "g++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable\n",
    "cc1plus: fatal error: kernel.cpp: Too many open files\n",
    "as: can't create /tmp/cc.o: Read-only file system\n",
    "kernel.cpp:2:1: internal compiler error: in expand_expr, at expr.cc:1\n",
    "cc1plus: fatal error: kernel.cpp: Input/output error\n",
    "g++: error: no valid license for this compiler was found\n",
    "\n",
};

TEST_F(a_machine_that_is_not_well, loses_no_candidate_and_leaves_nothing_in_the_cache) {
  int number = 0;
  for (const auto* fault : faults) {
    auto source = plain + ("// " + std::to_string(++number)) + "\n";
    says(fault);
    auto built = build_ill(source);
    EXPECT_FALSE(built.open()->getCompiled());
    EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE)
        << fault << built.open()->getFault().getMessage().cStr();
    says("");
    auto healthy = build_ill(source);
    EXPECT_TRUE(healthy.open()->getCompiled()) << fault;
    EXPECT_FALSE(healthy.open()->getCached()) << fault;
  }
  EXPECT_EQ(category(build_ill(wrong)), "compile_error");
}

TEST_F(a_machine_that_is_not_well, names_the_package_that_has_a_missing_header) {
  says("kernel.cpp:1:10: fatal error: omp.h: No such file or directory\n");
  auto built = build_ill(plain);
  EXPECT_EQ(category(built), "toolchain_missing");
  EXPECT_THAT(built.open()->getFault().getHint().cStr(), HasSubstr("libgcc"));
  EXPECT_THAT(built.open()->getFault().getMessage().cStr(), HasSubstr("omp.h"));
}

TEST_F(a_machine_that_is_not_well, cannot_be_pretended_by_a_source) {
  spares_controls();
  says("g++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable\n");
  auto built = build_ill(plain);
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
  EXPECT_TRUE(build_ill(plain).open()->getCached());
  for (const auto* lie : {"#line 1 \"as: x: No space left on device\"\n#error no\n",
                          "#include <vector.h>\n#error Input/output error\n",
                          "#line 1 \"/usr/include/stdio.h\"\n#error internal compiler error\n"})
    EXPECT_EQ(build(lie).open()->getFault().getClass(), wire::FaultClass::CANDIDATE) << lie;
}

TEST_F(a_machine_that_is_not_well, fails_its_probe) {
  EXPECT_TRUE(ill_->probe(contract_kind::native));
  says("as: fatal error: No space left on device\n");
  auto probed = ill_->probe(contract_kind::native);
  ASSERT_FALSE(probed);
  EXPECT_EQ(probed.error().category, "toolchain_failed");
}

TEST_F(a_machine_that_is_not_well, builds_again_after_an_installation) {
  EXPECT_EQ(category(build_ill(wrong)), "compile_error");
  EXPECT_TRUE(build_ill(wrong).open()->getCached());
  std::filesystem::create_directories(machine_.path() + "/include");
  std::ofstream{machine_.path() + "/include/installed.h"} << "int z;";
  auto x = options();
  x.compiler = compiler();
  native_toolchain other{walls_, x};
  auto asked = request(wrong);
  EXPECT_FALSE(other.build(*asked.open()).open()->getCached());
}

TEST_F(a_machine_that_is_not_well, has_nothing_against_how_an_editor_saved_a_file) {
  std::string utf16 = "\xff\xfe";
  for (const auto* x = plain; *x != 0; ++x) utf16 += {*x, '\0'};
  for (const auto& text : {"\xef\xbb\xbf" + std::string{plain}, utf16,
                           "// na\xefve\r\n" + std::string{plain}, std::string{plain}})
    EXPECT_TRUE(build(text).open()->getCompiled()) << text;
}

} // namespace toolchain_faults_test
} // namespace kernelmill
