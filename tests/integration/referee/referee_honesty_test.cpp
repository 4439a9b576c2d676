// What looks right and is not.

#include "referee_fixture.hpp"

using namespace kernelmill;
using testing::Contains;
using testing::HasSubstr;

namespace referee_honesty_test {

class referee_honesty : public referee_fixture {};

std::vector<std::string> rules(wire::EvaluateResult::Reader x) {
  std::vector<std::string> result;
  for (auto finding : x.getFindings()) result.push_back(finding.getRule());
  return result;
}

TEST_F(referee_honesty, a_write_to_an_input_is_found) {
  auto result = evaluate(row_sum("((float*)x)[0] = 0;" + std::string{honest_body}));
  auto x = result.open();
  EXPECT_FALSE(x->getCorrect());
  EXPECT_EQ(x->getFault().getCategory(), "crashed");
  EXPECT_THAT(x->getFault().getMessage().cStr(), HasSubstr("SIGSEGV writing x"));
  EXPECT_THAT(critical_rules(*x), Contains("input_overwrite"));
}

TEST_F(referee_honesty, a_write_one_beyond_the_end_is_found) {
  auto result = evaluate(row_sum(std::string{honest_body} + "y[rows] = 0;"));
  auto x = result.open();
  EXPECT_FALSE(x->getCorrect());
  // Up to 63 guard bytes, then a page that is not there.
  bool guard = x->getFault().getCategory() == "out_of_bounds_write";
  EXPECT_TRUE(guard || x->getFault().getCategory() == "crashed")
      << x->getFault().getMessage().cStr();
  if (guard) {
    EXPECT_THAT(critical_rules(*x), Contains("out_of_bounds_write"));
  }
}

TEST_F(referee_honesty, a_write_before_the_start_is_found) {
  auto result = evaluate(row_sum(std::string{honest_body} + "y[-1] = 0;"));
  EXPECT_EQ(result.open()->getFault().getCategory(), "out_of_bounds_write");
  EXPECT_THAT(critical_rules(*result.open()), Contains("out_of_bounds_write"));
}

TEST_F(referee_honesty, a_result_kept_by_pointer_is_wrong_at_the_second_contents) {
  auto result = evaluate(row_sum(
      "auto& kept = cache[{x, rows * 100003L + cols}]; if (kept.empty()) { " +
          std::string{honest_body} +
          " kept.assign(y, y + rows); } else for (int i = 0; i < rows; ++i) y[i] = kept[i];",
      "#include <map>\n#include <vector>\nstatic std::map<std::pair<const float*, long>, "
      "std::vector<float>> cache;"));
  EXPECT_FALSE(result.open()->getCorrect());
  EXPECT_EQ(result.open()->getFault().getCategory(), "wrong_result");
}

TEST_F(referee_honesty, half_precision_is_outside_the_bound) {
  auto result =
      evaluate(row_sum("for (int i = 0; i < rows; ++i) { _Float16 sum = 0; for (int j = 0; j < "
                       "cols; ++j) sum += (_Float16)x[(long)i * cols + j]; y[i] = sum; }"));
  EXPECT_EQ(result.open()->getFault().getCategory(), "wrong_result");
}

TEST_F(referee_honesty, another_order_of_summation_at_every_call_is_a_note) {
  auto result = evaluate(
      row_sum("static int turn = 0; ++turn; for (int i = 0; i < rows; ++i) { float sum = 0;"
              " for (int j = 0; j < cols; ++j) sum += x[(long)i * cols + (j + turn) % cols]; y[i] "
              "= sum; }"));
  EXPECT_TRUE(result.open()->getCorrect()) << result.open()->getFault().getMessage().cStr();
  EXPECT_TRUE(result.open()->getDeterministic());
  EXPECT_THAT(rules(*result.open()), Contains("bits_vary"));
}

TEST_F(referee_honesty, a_candidate_that_is_wrong_at_every_third_call_is_not_deterministic) {
  auto result = evaluate(row_sum(std::string{honest_body} +
                                 " static int turn = 0; if (++turn % 3 == 0) y[rows - 1] += 1;"));
  EXPECT_FALSE(result.open()->getDeterministic());
  EXPECT_THAT(rules(*result.open()), Contains("not_deterministic"));
}

TEST_F(referee_honesty, a_thread_that_writes_after_the_call_is_found) {
  // It may spoil what is taken, too; that it wrote later is found in any case.
  auto result = evaluate(row_sum(
      std::string{honest_body} + "latest = y; static bool once = (std::thread([] {"
                                 " for (;;) *latest = *latest == 1 ? 2 : 1; }).detach(), true);",
      "#include <thread>\nstatic volatile float* volatile latest;"));
  EXPECT_THAT(critical_rules(*result.open()), Contains("late_write")) << summary(result);
}

TEST_F(referee_honesty, a_done_flag_that_the_candidate_sets_itself_gains_nothing) {
  // It finds the control page by its mapping and marks every call as done at once.
  auto result = evaluate(row_sum("for (;;) if (auto* page = find()) { for (unsigned i = 0; i < "
                                 "1000; ++i) page[128 / 4] = i; return; }",
                                 R"(#include <cstdio>
#include <cstring>
static unsigned* find() {
  static unsigned* page = nullptr;
  if (page) return page;
  FILE* f = fopen("/proc/self/maps", "r");
  if (!f) return nullptr;
  char line[512];
  while (fgets(line, sizeof line, f))
    if (strstr(line, "kernelmill-control")) sscanf(line, "%p", (void**)&page);
  fclose(f);
  return page;
})"));
  EXPECT_FALSE(result.open()->getCorrect());
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
}

} // namespace referee_honesty_test
