// The contract `program` with real processes: what passes, and what each trick comes to.

#include "tests/integration/program/program_fixture.hpp"

using namespace kernelmill;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

namespace program_test {

using a_program = program_fixture;

const std::string head = "#include \"add.h\"\n#include <cstdlib>\n#include <unistd.h>\n";
const std::string works = "int work(int n) { usleep(100 * n); return n; }\n";
const std::string adds = "int add(int a, int b) { return a + b; }\n";
const std::string honest = head + works + adds;

// An answer whose add() begins with these statements.
std::string beginning_with(const std::string& statements, const std::string& before = {}) {
  return head + before + works + "int add(int a, int b) {\n" + statements + "\nreturn a + b; }\n";
}

// -- what is right and what is wrong --------------------------------------------------------------

TEST_F(a_program, that_is_right_passes_and_says_on_what_that_rests) {
  auto x = judge(honest);
  ASSERT_TRUE(x.correct) << x.category << ": " << x.message << "\n" << x.log;
  auto result = x.evaluated.open();
  ASSERT_EQ(result->getCases().size(), 1u);
  EXPECT_TRUE(result->getCases()[0].getHidden());
  EXPECT_TRUE(result->getSealed());
  EXPECT_STREQ(result->getOutput().cStr(), "");
  ASSERT_EQ(result->getFindings().size(), 1u);
  EXPECT_STREQ(result->getFindings()[0].getRule().cStr(), "own_word");
  EXPECT_TRUE(judge(honest).built.open()->getCached());
}

TEST_F(a_program, that_is_wrong_is_told_no_more_than_that) {
  auto x = judge(head + works + "int add(int a, int b) { return a - b; }\n");
  EXPECT_TRUE(x.compiled);
  EXPECT_EQ(x.category, "wrong_result");
  EXPECT_EQ(x.whose, fault_class::candidate);
  EXPECT_THAT(x.message, Not(HasSubstr("secret")));
  EXPECT_STREQ(x.evaluated.open()->getOutput().cStr(), "");
}

TEST_F(a_program, may_be_several_files_or_a_diff) {
  EXPECT_TRUE(judge("// file: solution.cpp\n" + head + works +
                    "int helper();\nint add(int a, int b) { return a + b + helper() - 5; }\n"
                    "// file: src/helper.cpp\nint helper() { return 5; }\n")
                  .correct);
  auto x = judge("--- a/src/helper.cpp\n+++ b/src/helper.cpp\n@@ -1 +1 @@\n"
                 "-int helper() { return 3; }\n+int helper() { return 4; }\n");
  EXPECT_EQ(x.category, "compile_error"); // it leaves solution.cpp out
}

TEST_F(a_program, that_does_not_compile_is_told_the_line) {
  auto x = judge(head + "int add(int a, int b) { return a + c; }\n" + works);
  EXPECT_EQ(x.category, "compile_error");
  EXPECT_EQ(x.whose, fault_class::candidate);
  auto diagnostics = x.built.open()->getDiagnostics();
  ASSERT_GT(diagnostics.size(), 0u);
  EXPECT_STREQ(diagnostics[0].getFile().cStr(), "solution.cpp");
  EXPECT_EQ(diagnostics[0].getLine(), 4u);
}

TEST_F(a_program, whose_linker_finds_no_function_is_the_candidates_fault) {
  auto x = judge(head + works);
  EXPECT_EQ(x.category, "compile_error");
  EXPECT_EQ(x.whose, fault_class::candidate);
}

TEST_F(a_program, whose_task_does_not_build_is_the_tasks_fault) {
  write("tests/test/more.cpp", "int broken( {\n");
  auto x = judge(honest);
  EXPECT_EQ(x.category, "bad_task");
  EXPECT_EQ(x.whose, fault_class::configuration);
}

TEST_F(a_program, whose_baseline_fails_is_the_tasks_fault) {
  write("baseline/solution.cpp", head + works + "int add(int, int) { return 0; }\n");
  auto x = judge(honest);
  EXPECT_EQ(x.category, "bad_baseline");
  EXPECT_EQ(x.whose, fault_class::configuration);
  EXPECT_THAT(problems(), HasSubstr("baseline"));
}

// -- what ends badly ------------------------------------------------------------------------------

TEST_F(a_program, that_crashes_is_ended) {
  auto x = judge(beginning_with("*(volatile int*)8 = 1;"));
  EXPECT_EQ(x.category, "crashed");
  EXPECT_EQ(x.whose, fault_class::candidate);
}

TEST_F(a_program, that_never_ends_is_ended) {
  write_task("timeout_s", "3");
  auto x = judge(beginning_with("for (volatile int i = 0;;) i = 0;"));
  EXPECT_EQ(x.category, "timed_out");
  EXPECT_EQ(x.whose, fault_class::candidate);
}

TEST_F(a_program, that_forks_without_end_harms_itself_alone) {
  write_task("timeout_s", "3");
  auto x = judge(beginning_with("for (;;) fork();"));
  EXPECT_FALSE(x.correct);
  EXPECT_EQ(x.whose, fault_class::candidate) << x.category << ": " << x.message;
  EXPECT_TRUE(judge(honest).correct);
}

TEST_F(a_program, that_fills_the_disk_harms_itself_alone) {
  auto x =
      judge(beginning_with("static char block[1 << 20]; FILE* f = fopen(\"/tmp/full\", \"w\");\n"
                           "for (int i = 0; i < 4096; ++i) if (fwrite(block, 1, sizeof block, f) "
                           "!= sizeof block) abort();",
                           "#include <cstdio>\n"));
  EXPECT_FALSE(x.correct);
  EXPECT_EQ(x.whose, fault_class::candidate) << x.category << ": " << x.message;
  EXPECT_TRUE(judge(honest).correct);
}

TEST_F(a_program, that_floods_its_output_is_ended) {
  auto x = judge(
      beginning_with("for (;;) puts(\"more and more and more and more\");", "#include <cstdio>\n"));
  EXPECT_EQ(x.category, "output_flood");
}

TEST_F(a_program, can_write_nowhere_outside) {
  auto x = judge(beginning_with("const char* const paths[] = {\"/usr/x\", \"/x\", \"/dev/x\"};\n"
                                "for (auto path : paths) if (fopen(path, \"w\")) return 7;",
                                "#include <cstdio>\n"));
  EXPECT_TRUE(x.correct) << x.category << ": " << x.message;
}

// -- tricks ---------------------------------------------------------------------------------------

TEST_F(a_program, that_leaves_before_the_tests_did_has_not_passed) {
  const std::string constructor = "__attribute__((constructor)) static void leave() { ";
  for (const auto& trick :
       {head + constructor + "exit(0); }\n" + works + "int add(int, int) { return 0; }\n",
        head + constructor + "_exit(0); }\n" + works + "int add(int, int) { return 0; }\n",
        beginning_with("_exit(0);"), beginning_with("exit(0);"), beginning_with("quick_exit(0);"),
        beginning_with("execl(\"/bin/true\", \"test.out\", (char*)nullptr);"),
        // The tests' own exit(1) and abort(), with other codes.
        head + "static void ok() { _exit(0); }\n" + works +
            "int add(int, int) { atexit(ok); return 0; }\n",
        head + "#include <csignal>\nstatic void ok(int) { _exit(0); }\n" + works +
            "int add(int a, int b) { signal(SIGABRT, ok); return b > 0 && a > 1000 ? 0 : a + b; "
            "}\n"}) {
    auto x = judge(trick);
    EXPECT_FALSE(x.correct);
    EXPECT_THAT(x.category, AnyOf("exited", "wrong_result")) << trick << x.message;
    EXPECT_EQ(x.whose, fault_class::candidate);
  }
}

TEST_F(a_program, that_defines_functions_of_libraries_has_not_passed) {
  for (const auto& trick :
       {"extern \"C\" void __assert_fail(const char*, const char*, unsigned, const char*) noexcept "
        "{ _exit(0); }\n",
        "extern \"C\" __attribute__((weak)) int strcmp(const char*, const char*) { return 1; "
        "}\n"}) {
    auto x = judge(head + works + adds + trick);
    EXPECT_EQ(x.category, "replaced_function") << trick << x.message;
  }
  // Its own exit() in place of the C library's: the tests' exit(1) is the candidate's.
  auto x = judge("#include \"add.h\"\n#include <unistd.h>\nextern \"C\" void exit(int) noexcept { "
                 "_exit(0); }\nint work(int n) { return n; }\nint add(int, int) { return 0; }\n");
  EXPECT_EQ(x.category, "replaced_function") << x.message;
}

TEST_F(a_program, cannot_put_files_where_the_tests_are) {
  for (const char* path : {"test/main.cpp", "include/add.h", "include/cassert", "../add.h"}) {
    auto x = judge("// file: " + std::string{path} + "\n" + honest);
    EXPECT_FALSE(x.compiled);
    EXPECT_EQ(x.category, "bad_answer") << path;
  }
}

// Each has the compiler, the assembler or the linker quote the tests, in lines of its own.
TEST_F(a_program, that_has_its_build_quote_the_tests_is_told_nothing_of_them) {
  const std::string test = "\"test/main.cpp\"\n";
  for (const auto& trick :
       {"#include <cassert>\n#define exit(x) static_assert(x == 7, \"exit\")\n#define main mine\n"
        "#include " +
            test,
        "asm(\".include \\\"test/main.cpp\\\"\");\n" + honest,
        honest +
            "template <int N> int leak();\n#define main mine\n#define argv argv[leak<40>()]\n"
            "#include " +
            test}) {
    auto x = judge(trick);
    EXPECT_EQ(x.category, "compile_error");
    for (const char* word : {"secret", "main.cpp", "argv", "argc", "leak", "exit("})
      EXPECT_THAT(x.message + x.log, Not(HasSubstr(word))) << trick;
  }
}

TEST_F(a_program, finds_nothing_that_an_earlier_run_left) {
  auto x = judge(head + works + adds +
                     "#include <cstdio>\n__attribute__((constructor)) static void leave() {\n"
                     "  if (fopen(\"left\", \"r\")) abort();\n  fclose(fopen(\"left\", \"w\"));\n"
                     "  fclose(fopen(\"new\", \"w\"));\n  rename(\"new\", \"test.out\");\n}\n",
                 true);
  EXPECT_TRUE(x.correct) << x.category << ": " << x.message;
}

// -- times ----------------------------------------------------------------------------------------

TEST_F(a_program, is_timed_beside_its_baseline_by_both_clocks) {
  auto x = judge(honest, true);
  ASSERT_TRUE(x.correct) << x.message;
  auto result = x.evaluated.open();
  auto timing = result->getTiming();
  ASSERT_TRUE(timing.getMeasured()) << timing.getNote().cStr();
  EXPECT_GE(timing.getSamples(), 6u);
  EXPECT_GT(timing.getCandidateDeviceMs(), 0);
  EXPECT_GT(timing.getCandidateCallMs(), timing.getCandidateDeviceMs());
  EXPECT_THAT(timing.getNote().cStr(), HasSubstr("clock inside"));
}

// It is slower than the baseline by 0.1 s, and says that it is a thousand times faster.
TEST_F(a_program, that_prints_a_time_of_its_own_is_not_paid_for_it) {
  auto x = judge(head + adds +
                     "#include <cstdio>\n#include <cstdlib>\nstatic void lie() { "
                     "puts(\"COMPUTE_EVAL_TIME_MS: 0.001\"); }\n"
                     "int work(int n) { atexit(lie); usleep(350 * n); return n; }\n",
                 true);
  ASSERT_TRUE(x.correct) << x.message;
  auto result = x.evaluated.open();
  EXPECT_LE(result->getTiming().getSpeedup().getLow(), 1.0) << result->getTiming().getNote().cStr();
}

// The driver's end of a context takes 0.1 s behind main. Not to wait for it proves no gain.
TEST_F(a_program, that_leaves_out_what_comes_behind_main_is_not_paid_for_it) {
  const std::string slow_end =
      "struct slow_end { ~slow_end() { usleep(100000); } } slow;\n" + works + adds;
  write("baseline/solution.cpp", head + slow_end);
  auto x = judge(head + slow_end +
                     "#include <cstdio>\nstatic void leave() { puts(\"COMPUTE_EVAL_TIME_MS: "
                     "0.001\"); fflush(stdout); _exit(0); }\n"
                     "static int first = atexit(leave);\n",
                 true);
  ASSERT_TRUE(x.correct) << x.message;
  auto result = x.evaluated.open();
  EXPECT_LT(result->getTiming().getSpeedup().getLow(), 2) << result->getTiming().getNote().cStr();
}

TEST_F(a_program, without_a_benchmark_is_not_timed) {
  write_task("benchmark", "\"\"");
  auto x = judge(honest, true);
  ASSERT_TRUE(x.correct) << x.message;
  EXPECT_FALSE(x.evaluated.open()->getTiming().getMeasured());
}

// -- the task's own check -------------------------------------------------------------------------

TEST_F(a_program, whose_task_is_sound_passes_its_check) {
  EXPECT_EQ(problems(), "");
}

TEST_F(a_program, whose_tests_pass_without_work_is_refused) {
  write_task("benchmark", "\"\"");
  write("tests/test/main.cpp", "int main() { return 0; }\n");
  EXPECT_THAT(problems(), HasSubstr("an empty answer passes"));
}

// The tests end the process themselves, so that a program which does so first looks the same.
TEST_F(a_program, whose_tests_cannot_be_told_from_a_trick_is_refused) {
  write_task("benchmark", "\"\"");
  write("tests/test/main.cpp",
        "#include <unistd.h>\n#include \"add.h\"\nint main() { _exit(add(2, 2) == 4 ? 0 : 1); }\n");
  EXPECT_THAT(problems(), HasSubstr("ends the process before the tests"));
}

} // namespace program_test
