// Sources that want files of this machine, or all of its time and memory. Limits are small here so
// that a bomb goes off early; what is tested is the verdict.

#include <cstdlib>

#include "tests/unit/toolchain/toolchain_fixture.hpp"

namespace kernelmill {
namespace toolchain_attack_test {

using testing::HasSubstr;
using testing::Not;

class a_hostile_source : public toolchain_fixture {
protected:
  a_hostile_source() : tight_(walls_, limited()) {}

  toolchain_options limited() {
    auto x = options();
    x.memory_bytes = uint64_t{512} << 20;
    x.deadline_ms = 20'000;
    return x;
  }

  result build_tight(const std::string& source, uint32_t deadline_ms = 0) {
    return verdict([&] {
      auto asked = request(source, deadline_ms);
      return tight_.build(*asked.open());
    });
  }

  // A compiler that had no core has not used its time up: that says nothing of the source.
  template <class Build>
  static result verdict(Build once) {
    auto built = once();
    for (int i = 0; i < 20 && built.open()->getFault().getCategory() == "machine_busy"; ++i)
      built = once();
    return built;
  }

  void expect_candidate_fault(const result& built, std::vector<std::string> categories) {
    auto view = built.open();
    EXPECT_FALSE(view->getCompiled());
    EXPECT_EQ(view->getFault().getClass(), wire::FaultClass::CANDIDATE)
        << view->getFault().getMessage().cStr();
    EXPECT_THAT(categories, testing::Contains(std::string{view->getFault().getCategory()}))
        << view->getFault().getMessage().cStr() << '\n'
        << view->getLog().cStr();
    EXPECT_LE(view->getLog().size(), size_t{16} << 10);
  }

  native_toolchain tight_;
};

TEST_F(a_hostile_source, cannot_read_files_of_this_machine) {
  for (auto* source :
       {"#include \"/etc/passwd\"\n", "#include \"/root/.bashrc\"\n",
        "asm(\".incbin \\\"/etc/passwd\\\"\");\n", "asm(\".include \\\"/etc/passwd\\\"\");\n",
        "#if __has_include(\"/etc/passwd\")\nint x;\n#else\n#error none\n#endif\n",
        "#if __has_include(\"/usr/share/doc/bash/copyright\")\nint x;\n"
        "#else\n#error none\n#endif\n"})
    expect_candidate_fault(build(source), {"compile_error"});
}

TEST_F(a_hostile_source, finds_an_environment_without_secrets) {
  ::setenv("KERNELMILL_TEST_SECRET", "sesame", 1);
  for (auto* source : {"#include \"/proc/self/environ\"\n", "#include \"/proc/1/environ\"\n"})
    EXPECT_THAT(build(source).open()->getLog().cStr(), Not(HasSubstr("sesame")));
  ::unsetenv("KERNELMILL_TEST_SECRET");
}

TEST_F(a_hostile_source, that_includes_an_endless_file_runs_out_of_memory) {
  expect_candidate_fault(build_tight("#include \"/dev/zero\"\n"), {"compile_memory"});
}

TEST_F(a_hostile_source, that_includes_itself_is_an_error) {
  expect_candidate_fault(build("#include __FILE__\n"), {"compile_error"});
}

TEST_F(a_hostile_source, with_a_macro_bomb_ends_with_a_verdict) {
  std::string source = "#define a0 x x x x x x x x x x\n";
  for (int i = 1; i < 10; ++i) {
    auto last = " a" + std::to_string(i - 1);
    source += "#define a" + std::to_string(i);
    for (int j = 0; j < 10; ++j) source += last;
    source += "\n";
  }
  expect_candidate_fault(build_tight(source + "int x = a9;\n", 10'000),
                         {"compile_memory", "compile_timeout"});
}

TEST_F(a_hostile_source, with_endless_templates_is_an_error) {
  expect_candidate_fault(
      build("template <int N> struct s { static constexpr int v = s<N + 1>::v; };\n"
            "int x = s<0>::v;\n"),
      {"compile_error"});
}

TEST_F(a_hostile_source, with_a_bomb_of_templates_ends_with_a_verdict) {
  expect_candidate_fault(
      build_tight("template <int D, int I> struct s {\n"
                  "  static constexpr long v = s<D - 1, 2 * I>::v + s<D - 1, 2 * I + 1>::v;\n};\n"
                  "template <int I> struct s<0, I> { static constexpr long v = I; };\n"
                  "long x = s<28, 1>::v;\n",
                  4'000),
      {"compile_memory", "compile_timeout"});
}

TEST_F(a_hostile_source, with_endless_constant_evaluation_ends_with_a_verdict) {
  expect_candidate_fault(build_tight("constexpr long f() { long n = 0; for (;;) ++n; return n; }\n"
                                     "constexpr long x = f();\n",
                                     4'000),
                         {"compile_error", "compile_timeout"});
}

TEST_F(a_hostile_source, that_hits_the_processor_limit_is_remembered) {
  std::string source = "template <int D, int I> struct s {\n"
                       "  static constexpr long v = s<D - 1, 2 * I>::v + s<D - 1, 2 * I + 1>::v;\n"
                       "};\ntemplate <int I> struct s<0, I> { static constexpr long v = I; };\n"
                       "long x = s<29, 1>::v;\n";
  auto first = verdict([&] { return build(source, 2'000); });
  expect_candidate_fault(first, {"compile_timeout"});
  // Unless this machine was so busy that the wall deadline came first.
  if (first.open()->getSeconds() < 2) {
    EXPECT_TRUE(build(source, 2'000).open()->getCached());
  }
}

TEST_F(a_hostile_source, with_a_huge_table_is_an_error) {
  expect_candidate_fault(build("extern \"C\" { int x[1'000'000'000] = {1}; }\n"),
                         {"compile_error", "compile_memory"});
}

TEST_F(a_hostile_source, with_a_flood_of_messages_leaves_a_short_log) {
  std::string source;
  for (int i = 0; i < 3000; ++i) source += "#pragma message(\"all work and no play\")\n";
  auto built = build(source);
  auto view = built.open();
  EXPECT_TRUE(view->getCompiled());
  EXPECT_LE(view->getLog().size(), size_t{16} << 10);
  EXPECT_THAT(view->getLog().cStr(), HasSubstr("(cut)"));
  EXPECT_LE(view->getDiagnostics().size(), 100u);
}

TEST_F(a_hostile_source, that_is_too_long_is_refused) {
  expect_candidate_fault(build(std::string((1 << 20) + 1, ' ')), {"compile_error"});
}

TEST_F(a_hostile_source, of_noise_is_an_error) {
  expect_candidate_fault(build("\x01\x02\xff\xfe #include \x80"), {"compile_error"});
  expect_candidate_fault(build(std::string(50'000, '(')), {"compile_error", "compile_memory"});
}

} // namespace toolchain_attack_test
} // namespace kernelmill
