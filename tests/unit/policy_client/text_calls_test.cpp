#include "actors/policy_client/protocol/text_calls.hpp"

#include <random>

#include <gtest/gtest.h>

namespace kernelmill {
namespace text_calls_test {

std::string times(size_t count, std::string_view text) {
  std::string result;
  result.reserve(count * text.size());
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

TEST(text_calls, an_answer_without_calls_is_text) {
  for (std::string_view text :
       {"", "Nothing to do.", "<KERNEL>\n__global__ void f() { if (a < b) c(); }\n</KERNEL>",
        R"({"name": "a plain answer in JSON"})", R"({"answer": [1, 2]})", "[1, 2]", "{"}) {
    auto x = parse_text_calls(text);
    EXPECT_EQ(x.text, text);
    EXPECT_TRUE(x.calls.empty()) << text;
    EXPECT_TRUE(x.problems.empty()) << text;
  }
}

TEST(text_calls, blocks_are_read_in_order_and_leave_the_text) {
  auto x = parse_text_calls("I look first.\n<tool_call>\n"
                            R"({"name": "inspect", "arguments": {"section": "sass"}})"
                            "\n</tool_call>\nThen:\n<tool_call>"
                            R"({"arguments": {"n": [1, 2.5, null]}, "id": "x1", "name": "bench"})"
                            "</tool_call>\n");
  EXPECT_EQ(x.text, "I look first.\n\nThen:");
  std::vector<tool_call> calls = {{"", "inspect", R"({"section":"sass"})"},
                                  {"x1", "bench", R"({"n":[1,2.5,null]})"}};
  EXPECT_EQ(x.calls, calls);
  EXPECT_TRUE(x.problems.empty());
}

TEST(text_calls, the_last_block_need_not_be_closed) {
  auto x = parse_text_calls(R"(<tool_call>{"name": "a"}<tool_call>{"name": "b"})");
  std::vector<tool_call> calls = {{"", "a", "{}"}, {"", "b", "{}"}};
  EXPECT_EQ(x.calls, calls);
  EXPECT_EQ(x.text, "");
}

TEST(text_calls, several_objects_of_one_block_are_several_calls) {
  for (auto block : {R"({"name":"a"} {"name":"b"})", R"([{"name":"a"},{"name":"b"}])",
                     "{\"name\":\"a\"}\n;{\"name\":\"b\"}"}) {
    auto x = parse_text_calls("<tool_call>" + std::string{block} + "</tool_call>");
    ASSERT_EQ(x.calls.size(), 2u) << block;
    EXPECT_EQ(x.calls[1].name, "b");
  }
}

TEST(text_calls, line_breaks_within_strings_are_read_as_they_are_meant) {
  auto x = parse_text_calls("<tool_call>{\"name\": \"write_candidate\", \"arguments\": "
                            "{\"source\": \"int a;\n\tint b; // \\\"}\\\" \\d\"}}</tool_call>");
  ASSERT_EQ(x.calls.size(), 1u);
  EXPECT_EQ(x.calls[0].arguments, R"({"source":"int a;\n\tint b; // \"}\" \\d"})");
}

TEST(text_calls, other_shapes_of_a_call_are_understood) {
  for (auto call : {R"({"name": "f", "parameters": {"x": 1}})",
                    R"({"type": "function", "function": {"name": "f", "arguments": {"x": 1}}})",
                    R"({"name": "f", "arguments": "{\"x\":1}"})"}) {
    auto x = parse_text_calls("<tool_call>" + std::string{call} + "</tool_call>");
    ASSERT_EQ(x.calls.size(), 1u) << call;
    EXPECT_EQ(x.calls[0], (tool_call{"", "f", R"({"x":1})"}));
  }
}

TEST(text_calls, what_is_broken_stays_in_the_text_and_is_named) {
  struct {
    const char* block;
    const char* problem;
  } cases[] = {
      {"{\"name\": \"f\", ", "is not JSON: \"{\"name\": \"f\",\""},
      {"f(1)", "is not JSON"},
      {"", "is not JSON"},
      {R"({"name": "f", "arguments": })", "is not JSON"},
      {R"({"tool": "f"})", "has no \"name\" that is text"},
      {R"({"name": 7})", "has no \"name\" that is text"},
      {R"({"name": ""})", "has no \"name\" that is text"},
      {R"([3])", "is no JSON object"},
      {R"({"name": "f", "arguments": [1]})", "has \"arguments\" that are no JSON object"},
      {R"({"name": "f", "arguments": "x"})", "has \"arguments\" that are no JSON object"},
  };
  for (const auto& [block, problem] : cases) {
    auto broken = "<tool_call>" + std::string{block} + "</tool_call>";
    auto x = parse_text_calls(broken + R"(<tool_call>{"name": "g"}</tool_call>)");
    EXPECT_EQ(x.text, broken);
    ASSERT_EQ(x.calls.size(), 1u) << block;
    EXPECT_EQ(x.calls[0].name, "g");
    ASSERT_EQ(x.problems.size(), 1u) << block;
    EXPECT_NE(x.problems[0].find(problem), std::string::npos) << x.problems[0];
  }
}

TEST(text_calls, a_thought_holds_no_calls) {
  auto x = parse_text_calls(R"(<think>Shall I <tool_call>{"name": "a"}</tool_call>?</think>
<tool_call>{"name": "b"}</tool_call>)");
  ASSERT_EQ(x.calls.size(), 1u);
  EXPECT_EQ(x.calls[0].name, "b");
  EXPECT_EQ(x.text, R"(<think>Shall I <tool_call>{"name": "a"}</tool_call>?</think>)");
  x = parse_text_calls(R"(<think>cut off <tool_call>{"name": "a"}</tool_call>)");
  EXPECT_TRUE(x.calls.empty());
  ASSERT_EQ(x.problems.size(), 1u);
  EXPECT_NE(x.problems[0].find("not closed"), std::string::npos);
}

TEST(text_calls, functions_of_qwen_coder_are_read) {
  auto x =
      parse_text_calls("I write it.\n<tool_call>\n<function=write_candidate>\n"
                       "<parameter=source>\nif (a < b && c > d) s = \"\\n\";\n\n</parameter>\n"
                       "<parameter=summary>\nit's \xe2\x82\xac\n</parameter>\n"
                       "</function>\n</tool_call>\n"
                       "<tool_call><function=build></function></tool_call>\n<tool_call>\n"
                       "<function=inspect><parameter=lines>7</parameter></function>"
                       "<function=run>\r\n<parameter=candidate>\r\nc1\r\n</parameter></function>");
  std::vector<tool_call> calls = {{"", "write_candidate",
                                   "{\"source\":\"if (a < b && c > d) s = "
                                   "\\\"\\\\n\\\";\\n\",\"summary\":\"it's \xe2\x82\xac\"}"},
                                  {"", "build", "{}"},
                                  {"", "inspect", R"({"lines":"7"})"},
                                  {"", "run", R"({"candidate":"c1"})"}};
  EXPECT_EQ(x.calls, calls);
  EXPECT_EQ(x.text, "I write it.");
  EXPECT_TRUE(x.problems.empty());
}

TEST(text_calls, a_function_that_can_be_read_in_two_ways_is_none) {
  struct {
    const char* block;
    const char* problem;
  } cases[] = {
      {R"(<function=f></function>{"name": "f"})", "something beside its <function=NAME>"},
      {R"({"name": "f"}<function=f></function>)", "is not JSON"},
      {"<function=f>", "something other than <parameter=NAME>"},
      {"<function=f>x</function>", "something other than <parameter=NAME>"},
      {R"(<function=f>{"a": 1}</function>)", "something other than <parameter=NAME>"},
      {"<function=f><parameter=a>1</function>", "a parameter that is not closed"},
      {"<function=f><parameter=a>1<parameter=b>2</parameter></function>", "tags of calls in it"},
      {"<function=f><parameter=a></function></parameter></function>", "tags of calls in it"},
      {"<function=f><parameter=a>1</parameter>2</parameter></function>", "something other than"},
      {"<function=f><parameter=a>1</parameter><parameter=a>1</parameter></function>", "twice"},
      {"<function=><parameter=a>1</parameter></function>", "a function without a name"},
      {"<function=f g></function>", "a function without a name"},
      {"<function=f><parameter=></parameter></function>", "a parameter without a name"},
      {"<function=f", "a function without a name"},
  };
  for (const auto& [block, problem] : cases) {
    auto broken = "<tool_call>" + std::string{block} + "</tool_call>";
    auto x = parse_text_calls(broken + "<tool_call><function=g></function></tool_call>");
    EXPECT_EQ(x.text, broken);
    ASSERT_EQ(x.calls.size(), 1u) << block;
    EXPECT_EQ(x.calls[0].name, "g");
    ASSERT_EQ(x.problems.size(), 1u) << block;
    EXPECT_NE(x.problems[0].find(problem), std::string::npos) << x.problems[0];
  }
}

TEST(text_calls, lists_of_mistral_are_read_in_both_forms) {
  std::vector<tool_call> calls = {{"", "f", R"({"x":1})"}, {"", "g", "{}"}};
  auto x = parse_text_calls(
      R"(Well. [TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}}, {"name": "g"}])");
  EXPECT_EQ(x.calls, calls);
  EXPECT_EQ(x.text, "Well.");
  x = parse_text_calls(R"([TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g{})");
  EXPECT_EQ(x.calls, calls);
  x = parse_text_calls(R"([TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"x": 1})");
  ASSERT_EQ(x.calls.size(), 1u);
  EXPECT_EQ(x.calls[0].id, "abcdefghi");
  for (std::string broken : {"[TOOL_CALLS]", "[TOOL_CALLS] f", "[TOOL_CALLS] [{]",
                             "[TOOL_CALLS]two words{}", "[TOOL_CALLS]f[ARGS]{\"x\": }"}) {
    x = parse_text_calls(broken);
    EXPECT_TRUE(x.calls.empty()) << broken;
    EXPECT_EQ(x.problems.size(), 1u) << broken;
    EXPECT_EQ(x.text, broken);
  }
}

TEST(text_calls, an_answer_of_objects_alone_is_calls_of_llama) {
  std::vector<tool_call> calls = {{"", "f", R"({"x":1})"}};
  for (std::string body : {R"({"name": "f", "parameters": {"x": 1}})",
                           R"(<|python_tag|>{"name":"f","parameters":{"x":1}})"})
    EXPECT_EQ(parse_text_calls("\n" + body + "\n").calls, calls);
  calls.push_back({"", "g", "{}"});
  EXPECT_EQ(
      parse_text_calls(R"({"name": "f", "parameters": {"x": 1}}; {"name": "g", "parameters": {}})")
          .calls,
      calls);
  // With words around it is no call, and broken it is named.
  EXPECT_TRUE(parse_text_calls(R"(So: {"name": "f", "parameters": {}})").calls.empty());
  auto broken = parse_text_calls(R"({"name": "f", "parameters": {"x": )");
  EXPECT_TRUE(broken.calls.empty());
  EXPECT_EQ(broken.problems.size(), 1u);
}

TEST(text_calls, calls_and_problems_are_bounded) {
  auto x = parse_text_calls(times(3000, R"(<tool_call>{"name": "f"}</tool_call>)"));
  EXPECT_EQ(x.calls.size(), max_tool_calls);
  ASSERT_EQ(x.problems.size(), 1u);
  EXPECT_EQ(x.problems[0], "of 3000 calls only the first 1024 are kept");
  x = parse_text_calls("<tool_call>[" + times(2000, R"({"name": "f"},)") + R"({"name": "f"}])");
  EXPECT_EQ(x.calls.size(), max_tool_calls);
  x = parse_text_calls(times(3000, "<tool_call>{</tool_call>"));
  EXPECT_LT(x.problems.size(), 100u);
  EXPECT_TRUE(x.calls.empty());
}

// Of megabytes in a form that is slow to a reader that looks twice: minutes then, not milliseconds.
TEST(text_calls, hostile_answers_take_linear_time) {
  constexpr size_t count = 20000;
  for (std::string_view piece : {"<tool_call>",
                                 "<tool_call>{\"",
                                 "<tool_call>{\"</tool_call>",
                                 "[TOOL_CALLS]",
                                 "{\"name\":",
                                 "[TOOL_CALLS]f[ARGS]{",
                                 "</tool_call>",
                                 "<think>",
                                 "[",
                                 "{",
                                 "\"",
                                 "\\",
                                 "[TOOL_CALLS] [{\"",
                                 "{}",
                                 "<tool_call>{\"name\":\"f\"}",
                                 "<function=f>",
                                 "<parameter=a></parameter>",
                                 "<parameter=a>",
                                 "<function=f></function>",
                                 "<tool_call><function=f><parameter=a>"}) {
    for (std::string_view front :
         {"", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<tool_call><function=f>",
          "<tool_call><function=f><parameter=b>",
          "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": "}) {
      auto x = parse_text_calls(std::string{front} + times(count, piece));
      EXPECT_LE(x.calls.size(), max_tool_calls);
    }
  }
}

TEST(text_calls, deep_nests_are_refused) {
  auto x = parse_text_calls(R"(<tool_call>{"name": "f", "arguments": {"x": )" + times(300, "[") +
                            times(300, "]") + "}}");
  EXPECT_TRUE(x.calls.empty());
  EXPECT_EQ(x.problems.size(), 1u);
}

TEST(text_calls, any_mixture_of_its_words_is_safe) {
  constexpr std::string_view words[] = {"<tool_call>",
                                        "</tool_call>",
                                        "[TOOL_CALLS]",
                                        "<function=f>",
                                        "<parameter=a>",
                                        "</parameter>",
                                        "</function>",
                                        "[ARGS]",
                                        "[CALL_ID]",
                                        "<|python_tag|>",
                                        "<think>",
                                        "</think>",
                                        "{\"name\":",
                                        "\"f\"",
                                        ",\"arguments\":",
                                        "{}",
                                        "}",
                                        "{",
                                        "[",
                                        "]",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "x",
                                        "\xff",
                                        "\xed\xa0\x80",
                                        ";",
                                        std::string_view{"\0", 1}};
  std::mt19937 random{7};
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random() % 24; n > 0; --n) text += words[random() % std::size(words)];
    auto x = parse_text_calls(text);
    for (const auto& call : x.calls) {
      EXPECT_FALSE(call.name.empty());
      EXPECT_EQ(call.arguments.front(), '{');
    }
    EXPECT_LE(x.text.size(), text.size());
  }
}

} // namespace text_calls_test
} // namespace kernelmill
