#include "actors/episode/completion_parser.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kernelmill {
namespace completion_parser_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string code = "extern \"C\" void solve(int n) {\n  for (int i = 0; i < n; ++i) {}\n}";

void expect_kernel(const std::string& text, const std::string& kernel = code) {
  auto x = parse_completion(text);
  EXPECT_TRUE(x.ok) << text;
  EXPECT_EQ(x.kernel, kernel) << text;
  EXPECT_EQ(text.substr(x.kernel_begin, x.kernel.size()), kernel) << text;
  EXPECT_THAT(x.problems, IsEmpty()) << text;
}

void expect_taken_with(const std::string& text, const std::string& problem) {
  auto x = parse_completion(text);
  EXPECT_TRUE(x.ok) << text;
  EXPECT_EQ(x.kernel, code) << text;
  EXPECT_THAT(x.problems, ElementsAre(HasSubstr(problem))) << text;
}

void expect_refused(const std::string& text, const std::string& problem) {
  auto x = parse_completion(text);
  EXPECT_FALSE(x.ok) << text;
  EXPECT_EQ(x.kernel, "") << text;
  EXPECT_THAT(x.problems, testing::Contains(HasSubstr(problem))) << text;
}

TEST(completion_parser, thought_diagnosis_and_fenced_kernel) {
  auto x = parse_completion("<think>\ntile it\n</think>\n<DIAGNOSIS> strided access </DIAGNOSIS>\n"
                            "<KERNEL>\n```cpp\n" +
                            code + "\n```\n</KERNEL>\n");
  EXPECT_TRUE(x.ok);
  EXPECT_EQ(x.thought, "tile it");
  EXPECT_EQ(x.kernel, code);
  EXPECT_EQ(x.language, "cpp");
  EXPECT_EQ(x.diagnosis, "strided access");
  EXPECT_THAT(x.problems, IsEmpty());
}

TEST(completion_parser, evidence_is_a_list_of_statements) {
  auto x = parse_completion("<EVIDENCE>\ndram_bytes falls\n launches rises; time falls\n\n"
                            "</EVIDENCE>\n<KERNEL>" +
                            code + "</KERNEL><EVIDENCE>cycles falls</EVIDENCE>");
  EXPECT_TRUE(x.ok);
  EXPECT_THAT(x.evidence,
              ElementsAre("dram_bytes falls", "launches rises", "time falls", "cycles falls"));
  auto open = parse_completion("<KERNEL>" + code + "</KERNEL><EVIDENCE>time falls");
  EXPECT_FALSE(open.ok);
  EXPECT_THAT(open.problems, ElementsAre(HasSubstr("<EVIDENCE> is not closed")));
}

TEST(completion_parser, kernels_with_and_without_fences) {
  expect_kernel("<KERNEL>" + code + "</KERNEL>");
  expect_kernel("<KERNEL>\r\n~~~~c++\r\n" + code + "\r\n~~~~\r\n</KERNEL>");
  expect_kernel("<KERNEL>```cpp\n" + code + "```</KERNEL>");
  expect_kernel("<KERNEL>```cpp int x = `1`;```</KERNEL>", "int x = `1`;");
  expect_kernel("<KERNEL>Here it is:\n```\n" + code + "\n```\nDone.</KERNEL>");
  expect_kernel("```\n<KERNEL>\n" + code + "\n</KERNEL>\n```");
  expect_kernel("<KERNEL>\n````cpp\n// ```\n```\n" + code + "\n````</KERNEL>",
                "// ```\n```\n" + code);
}

TEST(completion_parser, language_of_the_fence) {
  auto language = [](const std::string& info) {
    return parse_completion("<KERNEL>\n```" + info + "\nx\n```\n</KERNEL>").language;
  };
  EXPECT_EQ(language("C++"), "cpp");
  EXPECT_EQ(language("cu title=a"), "cuda");
  EXPECT_EQ(language("py"), "python");
  EXPECT_EQ(language("Rust"), "rust");
  EXPECT_EQ(language(""), "");
}

TEST(completion_parser, think_in_any_letter_case_and_its_long_form) {
  for (std::string name : {"think", "Think", "THINKING", "thinking"}) {
    auto x = parse_completion("<" + name + ">a</" + name + "><KERNEL>" + code + "</KERNEL>");
    EXPECT_TRUE(x.ok);
    EXPECT_EQ(x.thought, "a");
  }
}

TEST(completion_parser, a_kernel_inside_a_thought_is_not_a_kernel) {
  expect_kernel("<think>first <KERNEL>bad</KERNEL>, or\n```cpp\nworse\n```\n</think><KERNEL>" +
                code + "</KERNEL>");
  expect_refused("<think><KERNEL>" + code + "</KERNEL></think>", "stands inside <think>");
  expect_refused("<think>\n```cpp\n" + code + "\n```\n</think>", "There is no kernel");
}

TEST(completion_parser, a_thought_that_the_chat_template_opened) {
  auto x = parse_completion("I will use <KERNEL> tags\n</think>\n<KERNEL>" + code + "</KERNEL>");
  EXPECT_TRUE(x.ok);
  EXPECT_EQ(x.kernel, code);
  EXPECT_EQ(x.thought, "I will use <KERNEL> tags");
}

TEST(completion_parser, several_thoughts_are_joined) {
  auto x = parse_completion("<think>a</think> <think></think> <think>b</think><KERNEL>k</KERNEL>");
  EXPECT_EQ(x.thought, "a\n\nb");
}

TEST(completion_parser, a_code_block_without_the_tag_is_taken_and_named) {
  expect_taken_with("```cpp\n" + code + "\n```", "There is no <KERNEL>");
  expect_taken_with("```sh\ng++ x.cpp\n```\n```\n" + code + "\n```\n", "There is no <KERNEL>");
  expect_taken_with("```\nnotes\n```\n```cpp\n" + code + "\n```\n", "There is no <KERNEL>");
  expect_refused("```cpp\na\n```\n```cpp\nb\n```\n", "more than one code block");
  expect_refused("```cpp\n" + code, "not closed");
}

TEST(completion_parser, the_tag_in_small_letters_is_explained) {
  expect_refused("<kernel>" + code + "</kernel>", "<kernel> is not the tag");
  expect_taken_with("<kernel>\n```cpp\n" + code + "\n```\n</kernel>", "There is no <KERNEL>");
}

TEST(completion_parser, two_kernels) {
  auto one = "<KERNEL>" + code + "</KERNEL>";
  expect_taken_with(one + "\n" + one, "twice");
  expect_refused(one + "<KERNEL>int other;</KERNEL>", "two different kernels");
  expect_refused("<KERNEL>\n```cpp\na\n```\n```cpp\nb\n```\n</KERNEL>",
                 "two different code blocks");
  expect_taken_with("In <KERNEL> goes the code: " + one, "opened twice");
}

TEST(completion_parser, unclosed_tags) {
  expect_refused("<think>so <KERNEL>" + code + "</KERNEL>", "<think> is not closed");
  expect_refused("<KERNEL>" + code, "<KERNEL> is not closed");
  expect_refused("<DIAGNOSIS>a <KERNEL>" + code + "</KERNEL>", "<DIAGNOSIS> is not closed");
  expect_refused(code + "</KERNEL>", "has no <KERNEL>");
}

TEST(completion_parser, nothing_to_take) {
  expect_refused("", "empty");
  expect_refused(" \n\t", "empty");
  expect_refused("I cannot do this.", "no kernel");
  expect_refused("<KERNEL></KERNEL>", "kernel is empty");
  expect_refused("<KERNEL>\n```cpp\n\n```\n</KERNEL>", "kernel is empty");
}

TEST(completion_parser, bytes_that_no_program_has) {
  expect_refused("<KERNEL>int a\xff;</KERNEL>", "not UTF-8 at offset 13");
  expect_refused(std::string("<KERNEL>a\0b</KERNEL>", 20), "NUL byte at offset 9");
  expect_kernel("<KERNEL>// \xe2\x82\xac</KERNEL>", "// \xe2\x82\xac");
}

TEST(completion_parser, a_kernel_at_and_above_the_limit) {
  EXPECT_TRUE(parse_completion("<KERNEL>" + std::string(64, 'x') + "</KERNEL>", 64).ok);
  auto x = parse_completion("<KERNEL>" + std::string(65, 'x') + "</KERNEL>", 64);
  EXPECT_FALSE(x.ok);
  EXPECT_THAT(x.problems, ElementsAre(HasSubstr("65 bytes; at most 64")));
}

TEST(completion_parser, two_diagnoses_are_none) {
  auto x = parse_completion("<DIAGNOSIS>a</DIAGNOSIS><DIAGNOSIS>b</DIAGNOSIS><KERNEL>k</KERNEL>");
  EXPECT_TRUE(x.ok);
  EXPECT_EQ(x.diagnosis, "");
  EXPECT_THAT(x.problems, ElementsAre(HasSubstr("two different diagnoses")));
}

// Each would take minutes if any search started again from an earlier place.
TEST(completion_parser, ten_megabytes_of_tags_on_one_line_end_soon) {
  for (std::string piece :
       {"<", "<think>", "</think>", "<think></think>", "<KERNEL>", "</KERNEL>", "<KERNEL></KERNEL>",
        "```", "```\n", "~~~\n```\n", "<kernel>", "x", "<DIAGNOSIS></DIAGNOSIS>",
        "<EVIDENCE>x</EVIDENCE>", "<think><KERNEL></think>"}) {
    std::string text;
    text.reserve(10 << 20);
    while (text.size() + piece.size() <= (10 << 20)) text += piece;
    auto x = parse_completion(text);
    EXPECT_FALSE(x.ok) << piece;
    EXPECT_LE(x.problems.size(), 9u) << piece;
  }
}

TEST(completion_parser, cuda_launches_and_templates_are_not_tags) {
  expect_kernel("<KERNEL>k<<<g, b>>>(x); std::vector<float> v;</KERNEL>",
                "k<<<g, b>>>(x); std::vector<float> v;");
}

TEST(completion_parser, an_answer_that_was_cut_off_is_told_how_far_it_came) {
  auto first_problem = [](const std::string& text) {
    auto x = parse_completion(text);
    explain_cut(x, text, "max_tokens = 64");
    return x.problems.empty() ? std::string{} : x.problems.front();
  };
  const std::string reached = "The answer reached max_tokens = 64 before ";
  for (std::string text : {"", "I think", "<think>so <KERNEL> is the tag", "<think>a</think>\nNow",
                           "<think>\n<KERNEL>x\n</think>\n"})
    EXPECT_EQ(first_problem(text).find(reached + "a kernel began."), 0u) << text;
  for (std::string text : {"<KERNEL>\nint x", "<think>a</think><KERNEL>```cpp\nint"})
    EXPECT_EQ(first_problem(text).find(reached + "its kernel ended."), 0u) << text;
  auto two = parse_completion("<KERNEL>a</KERNEL><KERNEL>b</KERNEL>");
  explain_cut(two, "<KERNEL>a</KERNEL><KERNEL>b</KERNEL>", "max_tokens = 64");
  EXPECT_EQ(two.problems.size(), 2u) << "what else is wrong is said too";
  EXPECT_EQ(first_problem("<KERNEL>int x;</KERNEL>"), "") << "what came whole is judged";
}

std::string letters(const std::string& alphabet) {
  return *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
}

RC_GTEST_PROP(completion_parser, a_well_formed_answer_comes_back_as_it_was, ()) {
  auto thought = "t" + letters("ab <>/`~\n") + "t";
  auto kernel = "k" + letters("ab <>/\n\t{};") + "k";
  auto x = parse_completion("<think>" + thought + "</think>\n<KERNEL>\n```cpp\n" + kernel +
                            "\n```\n</KERNEL>");
  RC_ASSERT(x.ok);
  RC_ASSERT(x.thought == thought);
  RC_ASSERT(x.kernel == kernel);
}

RC_GTEST_PROP(completion_parser, any_mix_of_pieces_gives_a_kernel_or_a_reason, ()) {
  const std::vector<std::string> pieces{
      "<think>", "</think>",    "<KERNEL>",     "</KERNEL>", "```cpp\n", "```\n",    "~~~", "\n",
      "x",       "<DIAGNOSIS>", "</DIAGNOSIS>", "\xff",      "\xc3\xa9", "<Kernel>", " "};
  std::string text;
  for (const auto& piece :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)))
    text += piece;
  auto x = parse_completion(text);
  RC_ASSERT(x.ok == !x.kernel.empty());
  RC_ASSERT(text.substr(x.kernel_begin, x.kernel.size()) == x.kernel);
  if (!x.ok) RC_ASSERT(!x.problems.empty());
}

} // namespace completion_parser_test
} // namespace kernelmill
