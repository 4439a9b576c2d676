#include "referee_fixture.hpp"

#include <fstream>
#include <iterator>

using namespace kernelmill;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

namespace task_check_test {

class task_check : public referee_fixture {};

std::string reference(const std::string& value, const std::string& scale) {
  return "#include <cmath>\nextern \"C\" void reference(const double* x, double* y, double* "
         "y_scale, int rows, int cols) {"
         " for (int i = 0; i < rows; ++i) { double sum = 0, magnitude = 0;"
         " for (int j = 0; j < cols; ++j) { sum += x[long(i) * cols + j]; magnitude += "
         "std::fabs(x[long(i) * cols + j]); }"
         " (void)sum; (void)magnitude; y[i] = " +
         value + "; y_scale[i] = " + scale + "; } }\n";
}

TEST_F(task_check, a_sound_task_has_no_problem) {
  EXPECT_THAT(problems_of(task_directory()), IsEmpty());
}

TEST_F(task_check, a_wrong_baseline_is_a_problem) {
  auto folder =
      changed_task({{"baseline.cpp", row_sum("for (int i = 0; i < rows; ++i) y[i] = 0;")}});
  EXPECT_THAT(problems_of(folder), Contains(HasSubstr("the baseline fails")));
}

TEST_F(task_check, a_loose_scale_lets_outputs_pass_that_need_no_work) {
  auto folder = changed_task({{"reference.cpp", reference("sum", "1e12")}});
  auto problems = problems_of(folder);
  EXPECT_THAT(problems, Contains(HasSubstr("all zeros passes all")));
  EXPECT_THAT(problems, Contains(HasSubstr("the output of the call before passes")));
  EXPECT_THAT(problems, Contains(HasSubstr("bf16")));
}

TEST_F(task_check, a_reference_that_ignores_its_input_is_refused) {
  auto folder =
      changed_task({{"reference.cpp", reference("1", "1")},
                    {"baseline.cpp", row_sum("for (int i = 0; i < rows; ++i) y[i] = 1;")}});
  auto problems = problems_of(folder);
  EXPECT_THAT(problems, Contains(HasSubstr("does not depend on input x")));
  EXPECT_THAT(problems, Contains(HasSubstr("all ones passes")));
}

TEST_F(task_check, a_reference_that_is_not_finite_is_refused) {
  EXPECT_THAT(problems_of(changed_task({{"reference.cpp", reference("sum / 0.0", "magnitude")}})),
              Contains(HasSubstr("the reference gives")));
}

TEST_F(task_check, a_scale_of_zero_is_refused) {
  EXPECT_THAT(problems_of(changed_task({{"reference.cpp", reference("sum", "0")}})),
              Contains(HasSubstr("is 0 everywhere")));
}

// What `task check` refuses no other command takes for a candidate's fault, or pays for.
TEST_F(task_check, a_task_that_decides_nothing_judges_no_candidate) {
  for (const auto& [value, words] :
       {std::pair{"1", "passes all"}, std::pair{"sum / 0.0", "the reference gives"}}) {
    auto folder =
        changed_task({{"reference.cpp", reference(value, "1")},
                      {"baseline.cpp", row_sum("for (int i = 0; i < rows; ++i) y[i] = 1;")}});
    for (const char* body : {honest_body, "for (int i = 0; i < rows; ++i) y[i] = 1;"}) {
      auto result =
          evaluate(row_sum(body), [&](wire::EvaluateRequest::Builder x) { x.setTaskDir(folder); });
      auto x = result.open();
      EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CONFIGURATION) << summary(result);
      EXPECT_EQ(std::string{x->getFault().getCategory()}, "unfit_task");
      EXPECT_THAT(std::string{x->getFault().getMessage()}, HasSubstr(words));
      EXPECT_FALSE(x->getCorrect());
      EXPECT_EQ(x->getCases().size(), 0u);
    }
  }
}

// A copy of a starter that passes would be an answer.
TEST_F(task_check, a_starter_to_be_repaired_must_be_broken) {
  std::ifstream in{task_directory() + "/task.json"};
  std::string document{std::istreambuf_iterator<char>{in}, {}};
  auto of_verb = [&](const std::string& verb) {
    auto text = document;
    return text.replace(text.find("\"optimize\""), 10, "\"" + verb + "\"")
        .replace(text.find("[\"cpu\""),
                 text.find(']', text.find("[\"cpu\"")) - text.find("[\"cpu\"") + 1, "[\"cpu\"]");
  };
  auto wrong = row_sum("for (int i = 0; i < rows; ++i) y[i] = 0;");
  auto sound = changed_task({{"task.json", of_verb("debug")}, {"starter.cpp", wrong}});
  EXPECT_THAT(problems_of(sound), IsEmpty());
  auto broken_text = changed_task({{"task.json", of_verb("debug")}, {"starter.cpp", "int solve("}});
  EXPECT_THAT(problems_of(broken_text), IsEmpty());
  auto folder =
      changed_task({{"task.json", of_verb("debug")}, {"starter.cpp", row_sum(honest_body)}});
  EXPECT_THAT(problems_of(folder), Contains(HasSubstr("nothing to repair")));
  auto result = evaluate(row_sum(honest_body),
                         [&](wire::EvaluateRequest::Builder x) { x.setTaskDir(folder); });
  EXPECT_EQ(std::string{result.open()->getFault().getCategory()}, "unfit_task") << summary(result);
  auto other = changed_task({{"task.json", of_verb("reformulate")}, {"starter.cpp", wrong}});
  EXPECT_THAT(problems_of(other), Contains(HasSubstr("it must be right")));
}

TEST_F(task_check, files_that_do_not_build_are_told_with_the_compilers_words) {
  EXPECT_THAT(problems_of(changed_task({{"reference.cpp", "extern \"C\" void reference( {"}})),
              Contains(HasSubstr("reference.cpp:1:")));
}

TEST_F(task_check, a_broken_document_is_told_with_its_line) {
  EXPECT_THAT(problems_of(changed_task({{"task.json", "{\n\"id\": 1,,}"}})),
              Contains(HasSubstr("line 2")));
}

} // namespace task_check_test
