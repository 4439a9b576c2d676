#include "launch/server/scripted/scripted_calls.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "actors/policy_client/protocol/chat_stream.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"
#include "launch/server/scripted/scripted_kinds.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace scripted_calls_test {

using nlohmann::json;

policy_script script_of(const std::string& replies, const std::string& more = {}) {
  auto x = parse_policy_script(R"({"model": "m", "replies": [)" + replies + "]" + more + "}", "s",
                               "/nowhere");
  EXPECT_TRUE(x) << render(x.error());
  return x ? *x : policy_script{};
}

const char* const two_calls =
    R"({"text": "I look.", "tool_calls": [{"name": "eval", "arguments": {"n": [1, "déjà vu in a long text"]}},
       {"name": "bench"}]})";

scripted_request request_of(bool tools) {
  scripted_request x;
  x.model = "m";
  x.tools = tools;
  x.token_ids = true;
  return x;
}

std::vector<std::string> names_of(const std::vector<tool_call>& calls) {
  std::vector<std::string> result;
  for (const auto& x : calls) result.push_back(x.name + x.arguments);
  return result;
}

const std::vector<std::string> expected_calls = {R"(eval{"n":[1,"déjà vu in a long text"]})",
                                                 "bench{}"};

TEST(scripted_calls, are_told_plain_and_streamed_alike) {
  auto script = script_of(two_calls);
  const auto& reply = script.replies[0];
  auto plain = parse_chat_response(chat_answer(request_of(true), reply, "id", 1));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->content, "I look.");
  EXPECT_EQ(names_of(plain->calls), expected_calls);
  EXPECT_EQ(plain->finish_reason, "tool_calls");
  chat_stream stream;
  for (const auto& x : chat_events(request_of(true), reply, "id", 1)) stream.feed(x);
  auto streamed = stream.finish();
  ASSERT_TRUE(streamed);
  EXPECT_EQ(streamed->content, plain->content);
  EXPECT_EQ(streamed->calls, plain->calls);
  EXPECT_EQ(streamed->finish_reason, "tool_calls");
  EXPECT_EQ(streamed->token_ids, plain->token_ids);
  EXPECT_NE(plain->calls[0].id, plain->calls[1].id);
  auto later = request_of(true);
  later.turn = 1;
  EXPECT_NE(parse_chat_response(chat_answer(later, reply, "id", 1))->calls[0].id,
            plain->calls[0].id);
}

TEST(scripted_calls, are_blocks_of_the_text_where_no_tools_are_offered) {
  auto script = script_of(two_calls);
  auto x = parse_chat_response(chat_answer(request_of(false), script.replies[0], "id", 1));
  ASSERT_TRUE(x);
  EXPECT_TRUE(x->calls.empty());
  EXPECT_EQ(x->finish_reason, "stop");
  auto read = parse_text_calls(x->content);
  EXPECT_EQ(read.text, "I look.");
  EXPECT_EQ(names_of(read.calls), expected_calls);
  auto cut = request_of(true);
  cut.max_tokens = 4;
  x = parse_chat_response(chat_answer(cut, script.replies[0], "id", 1));
  EXPECT_TRUE(x->calls.empty()) << "no parser reads a call that is cut off";
  EXPECT_EQ(x->finish_reason, "length");
}

TEST(scripted_calls, a_reply_may_be_calls_alone_and_take_texts_from_files) {
  auto folder = std::filesystem::temp_directory_path() / ("km-calls-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "a.cpp"} << "int x;\n";
  auto x = parse_policy_script(
      R"({"replies": [{"thought": "hm", "tool_calls": [{"name": "write", "arguments": {"a": 1},
         "files": {"source": "a.cpp"}}, {"name": "broken", "arguments": "{\"n\": "}]}]})",
      "s", folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->replies[0].text, "<think>\nhm\n</think>");
  EXPECT_EQ(names_of(x->replies[0].calls),
            (std::vector<std::string>{R"(write{"a":1,"source":"int x;\n"})", "broken{\"n\": "}));
}

TEST(scripted_calls, wrong_scripts_are_refused_by_the_key) {
  auto fault = [](const std::string& reply) {
    auto x = parse_policy_script(R"({"replies": [)" + reply + "]}", "s", "/nowhere");
    return x ? std::string{} : render(x.error());
  };
  EXPECT_NE(fault(R"({"tool_calls": []})").find("replies[0].tool_calls is empty"),
            std::string::npos);
  EXPECT_NE(fault(R"({"tool_calls": [{}]})").find("replies[0].tool_calls[0].name"),
            std::string::npos);
  EXPECT_NE(fault(R"({"tool_calls": [{"name": "f", "arguments": [1]}]})").find("arguments"),
            std::string::npos);
  EXPECT_NE(fault(R"({"tool_calls": [{"name": "f", "files": {"s": "no"}}]})").find("/nowhere/no"),
            std::string::npos);
  EXPECT_NE(fault(R"({"thought": "a"})").find("needs either"), std::string::npos);
}

const char* const conversation =
    R"({"model":"m","tools":[{"type":"function","function":{"name":"bench"}}],"messages":[
      {"role":"user","content":"[task: t]"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"bench","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"a","content":"12 us"}]})";

TEST(scripted_calls, conversations_with_tools_are_understood_and_rendered) {
  auto x = read_chat_request(conversation, "");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->tools);
  EXPECT_EQ(x->turn, 1u);
  EXPECT_EQ(x->task, "t");
  for (const char* text : {"<tool_call>\n{\"name\": \"bench\", \"arguments\": {}}\n</tool_call>",
                           "\"function\":{\"name\":\"bench\"}", "12 us"})
    EXPECT_NE(x->prompt.find(text), std::string::npos) << text;
  auto body = json::parse(conversation);
  body["messages"][1]["tool_calls"][0]["function"]["arguments"] = "{";
  EXPECT_FALSE(read_chat_request(body.dump(), "")) << "as engines do";
  body = json::parse(conversation);
  body["messages"][2].erase("tool_call_id");
  EXPECT_FALSE(read_chat_request(body.dump(), ""));
}

TEST(scripted_calls, a_server_without_a_parser_refuses_tools_in_its_own_words) {
  for (auto kind : {server_kind::openai, server_kind::vllm, server_kind::llamacpp}) {
    auto script = script_of(two_calls, R"(, "tools": false)");
    script.kind = kind;
    auto x = read_request(scripted_route::chat, script, conversation, "");
    ASSERT_FALSE(x);
    EXPECT_EQ(refuses_tools({x.error().message, "", ""}), kind != server_kind::openai);
  }
  auto script = script_of(two_calls, R"(, "tools": false, "kind": "sglang")");
  auto x = read_request(scripted_route::chat, script, conversation, "");
  ASSERT_TRUE(x);
  EXPECT_FALSE(x->tools) << "it leaves the calls in the text";
}

} // namespace scripted_calls_test
} // namespace kernelmill
