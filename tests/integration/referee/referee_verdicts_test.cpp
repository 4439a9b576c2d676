// Each way in which a candidate can end, with its own category.

#include "referee_fixture.hpp"

using namespace kernelmill;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

namespace referee_verdicts_test {

class referee_verdicts : public referee_fixture {
protected:
  std::string category(const std::string& source) {
    auto result = evaluate(source);
    auto open = result.open();
    auto fault = open->getFault();
    EXPECT_FALSE(open->getCorrect());
    EXPECT_EQ(fault.getClass(), wire::FaultClass::CANDIDATE) << fault.getMessage().cStr();
    return fault.getCategory();
  }
};

TEST_F(referee_verdicts, an_honest_kernel_is_correct_in_all_cases) {
  auto result = evaluate(row_sum(honest_body));
  auto x = result.open();
  EXPECT_TRUE(x->getCorrect()) << x->getFault().getMessage().cStr();
  EXPECT_TRUE(x->getDeterministic());
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
  EXPECT_EQ(x->getFindings().size(), 0u);
  EXPECT_EQ(x->getSeed().size(), 32u);
  EXPECT_GT(x->getCases().size(), 4u);
  for (auto c : x->getCases()) EXPECT_TRUE(c.getPass()) << c.getName().cStr();
}

TEST_F(referee_verdicts, a_wrong_kernel_is_told_where_and_hidden_cases_are_not_run) {
  auto result = evaluate(row_sum("for (int i = 0; i < rows; ++i) y[i] = 1;"));
  auto x = result.open();
  EXPECT_FALSE(x->getCorrect());
  EXPECT_EQ(x->getFault().getCategory(), "wrong_result");
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("y[0]: got 1, want"));
  for (auto c : x->getCases()) EXPECT_FALSE(c.getHidden());
  EXPECT_GT(x->getCases().size(), 1u);
}

TEST_F(referee_verdicts, a_kernel_for_the_visible_shapes_fails_a_hidden_one_without_its_numbers) {
  auto result = evaluate(row_sum(std::string{"if (rows > 100) return;"} + honest_body));
  auto x = result.open();
  EXPECT_EQ(x->getFault().getCategory(), "wrong_result");
  EXPECT_THAT(x->getFault().getMessage().cStr(), StartsWith("a hidden case is wrong"));
}

TEST_F(referee_verdicts, an_untouched_output_is_wrong) {
  EXPECT_EQ(category(row_sum("")), "wrong_result");
}

TEST_F(referee_verdicts, a_crash_names_its_signal) {
  auto result = evaluate(row_sum("*(volatile int*)16 = 1;"));
  auto x = result.open();
  EXPECT_EQ(x->getFault().getCategory(), "crashed");
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("SIGSEGV"));
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("writing address 0x10"));
}

TEST_F(referee_verdicts, abort_is_a_crash) {
  EXPECT_EQ(category(row_sum("__builtin_abort();")), "crashed");
}

TEST_F(referee_verdicts, an_endless_loop_is_timed_out) {
  EXPECT_EQ(category(row_sum("for (volatile int i = 0;; i = i + 1) {}")), "timed_out");
}

TEST_F(referee_verdicts, exit_is_not_a_result) {
  EXPECT_EQ(category(row_sum("exit(0);", "#include <cstdlib>")), "exited");
  EXPECT_EQ(category(row_sum("_exit(3);", "#include <unistd.h>")), "exited");
}

TEST_F(referee_verdicts, a_flood_of_output_is_ended) {
  EXPECT_EQ(category(row_sum("for (;;) puts(\"flood flood flood flood flood flood\");",
                             "#include <cstdio>")),
            "output_flood");
}

TEST_F(referee_verdicts, some_output_is_kept_and_cleaned) {
  auto result = evaluate(
      row_sum("printf(\"hello \\033[31m\\001\\n\"); fflush(stdout);" + std::string{honest_body},
              "#include <cstdio>"));
  auto x = result.open();
  EXPECT_TRUE(x->getCorrect());
  EXPECT_THAT(x->getOutput().cStr(), StartsWith("hello [31m\n"));
  EXPECT_LE(x->getOutput().size(), 4096u);
}

TEST_F(referee_verdicts, a_memory_bomb_is_out_of_memory) {
  EXPECT_EQ(
      category(row_sum("for (;;) { auto* p = new char[64 << 20];"
                       " for (long i = 0; i < 64 << 20; i += 4096) ((volatile char*)p)[i] = 1; }")),
      "out_of_memory");
}

TEST_F(referee_verdicts, memory_that_is_only_asked_for_is_out_of_memory_too) {
  EXPECT_EQ(category(row_sum("for (;;) (void)*(char* volatile*)new char*(new char[64 << 20]);")),
            "out_of_memory");
}

TEST_F(referee_verdicts, a_fork_gets_nowhere) {
  auto result = evaluate(
      row_sum("if (fork() >= 0) return;" + std::string{honest_body}, "#include <unistd.h>"));
  EXPECT_TRUE(result.open()->getCorrect());
}

TEST_F(referee_verdicts, a_missing_symbol_and_a_broken_constructor) {
  EXPECT_EQ(category("extern \"C\" void resolve() {}"), "missing_symbol");
  EXPECT_EQ(category("extern \"C\" void nowhere(); extern \"C\" void solve() { nowhere(); }"),
            "load_failed");
  EXPECT_EQ(category(row_sum("", "struct early { early() { __builtin_trap(); } } x;")), "crashed");
}

TEST_F(referee_verdicts, openmp_kernels_run) {
  auto result = evaluate(row_sum("_Pragma(\"omp parallel for\")" + std::string{honest_body}));
  EXPECT_TRUE(result.open()->getCorrect()) << result.open()->getFault().getMessage().cStr();
}

TEST_F(referee_verdicts, the_same_seed_gives_the_same_facts) {
  auto wrong = row_sum("for (int i = 0; i < rows; ++i) y[i] = x[i * cols] + 1;");
  auto seeded = [](wire::EvaluateRequest::Builder x) {
    auto seed = x.initSeed(32);
    std::fill(seed.begin(), seed.end(), 7);
  };
  auto a = evaluate(wrong, seeded);
  auto b = evaluate(wrong, seeded);
  auto c = evaluate(wrong);
  EXPECT_EQ(a.open()->getCases()[0].getFirstBad(), b.open()->getCases()[0].getFirstBad());
  EXPECT_NE(a.open()->getCases()[0].getFirstBad(), c.open()->getCases()[0].getFirstBad());
}

TEST_F(referee_verdicts, a_changed_library_is_our_fault) {
  auto result = evaluate(row_sum(honest_body), [](wire::EvaluateRequest::Builder x) {
    x.setLibrarySha256(std::string(64, '0'));
  });
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_EQ(result.open()->getFault().getCategory(), "library_lost");
}

TEST_F(referee_verdicts, a_changed_task_is_the_users_fault) {
  auto result = evaluate(row_sum(honest_body), [](wire::EvaluateRequest::Builder x) {
    x.setTaskDigest(std::string(64, '0'));
  });
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_EQ(result.open()->getFault().getCategory(), "task_changed");
}

} // namespace referee_verdicts_test
