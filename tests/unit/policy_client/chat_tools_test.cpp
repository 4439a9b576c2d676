// Calls of tools in the words of OpenAI's servers: what is asked, and what answers are read as.

#include <gtest/gtest.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/protocol/chat_calls.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace chat_tools_test {

using nlohmann::json;
using nlohmann::ordered_json;

const char* const schema =
    R"({"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"a":{}}})";

void set_call(wire::ToolCall::Builder x, const char* id, const char* name, const char* arguments) {
  x.setId(id);
  x.setName(name);
  x.setArguments(arguments);
}

// A conversation across the result of a tool.
Message<wire::CompletionRequest> request_of(const char* arguments = "{\"n\": 1}",
                                            const char* name = "bench") {
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    auto messages = x.initMessages(3);
    messages[0].setRole("user");
    messages[0].setContent("go");
    messages[1].setRole("assistant");
    set_call(messages[1].initCalls(1)[0], "call00001", name, arguments);
    messages[2].setRole("tool");
    messages[2].setContent("12 us");
    messages[2].setCallId("call00001");
    x.initSampling().setMaxTokens(9);
    auto tool = x.initTools(1)[0];
    tool.setName("bench");
    tool.setDescription("Times it.");
    tool.setParameters(schema);
    x.setToolChoice("auto");
  });
}

json sent(const Message<wire::CompletionRequest>& request) {
  return json::parse(chat_body(*request.open(), {"m"}));
}

std::string sent_arguments(const char* arguments) {
  return sent(request_of(arguments))["messages"][1]["tool_calls"][0]["function"]["arguments"];
}

TEST(tools_in_requests, tools_calls_and_results_are_in_the_body) {
  auto body = sent(request_of());
  EXPECT_EQ(body["tools"], json::parse(R"([{"type":"function","function":{"name":"bench",
    "description":"Times it.","parameters":)" +
                                       std::string{schema} + "}}]"));
  EXPECT_EQ(body["tool_choice"], "auto");
  EXPECT_EQ(body["messages"], json::parse(R"([{"role":"user","content":"go"},
    {"role":"assistant","content":"","tool_calls":[{"id":"call00001","type":"function",
      "function":{"name":"bench","arguments":"{\"n\": 1}"}}]},
    {"role":"tool","content":"12 us","tool_call_id":"call00001"}])"));
  // The model reads the schema as it was written.
  EXPECT_NE(chat_body(*request_of().open(), {"m"}).find(schema), std::string::npos);
}

TEST(tools_in_requests, without_tools_nothing_is_said_of_them) {
  auto request = build<wire::CompletionRequest>([](wire::CompletionRequest::Builder x) {
    auto message = x.initMessages(1)[0];
    message.setRole("user");
    message.setContent("go");
    x.setToolChoice("auto");
    x.initSampling().setMaxTokens(9);
  });
  EXPECT_EQ(chat_body(*request.open(), {"m"}),
            R"({"messages":[{"role":"user","content":"go"}],"max_tokens":9,"model":"m",)"
            R"("temperature":1.0,"top_p":1.0})");
}

TEST(tools_in_requests, no_call_of_a_model_makes_the_next_request_a_bad_one) {
  EXPECT_EQ(sent_arguments(""), "{}");
  EXPECT_EQ(sent_arguments("{\"n\":"), R"({"arguments":"{\"n\":"})");
  EXPECT_EQ(sent_arguments("[1]"), R"({"arguments":"[1]"})");
  EXPECT_EQ(sent_arguments("null"), R"({"arguments":"null"})");
  auto deep = "{\"a\":" + std::string(400, '[') + std::string(400, ']') + "}";
  EXPECT_TRUE(json::parse(sent_arguments(deep.c_str()))["arguments"].is_string());
  auto name = [](const char* x) {
    return sent(request_of("{}", x))["messages"][1]["tool_calls"][0]["function"]["name"];
  };
  EXPECT_EQ(name(""), "_");
  EXPECT_EQ(name("rm -rf <\xff>"), "rm_-rf____");
  EXPECT_EQ(name(std::string(200, 'x').c_str()), std::string(64, 'x'));
}

TEST(tools_in_requests, all_routes_that_render_show_them) {
  auto request = request_of();
  auto view = request.open();
  auto body = ordered_json::parse(tokenize_body(*view, "m"));
  EXPECT_EQ(body["tools"][0]["function"]["parameters"].dump(), schema);
  EXPECT_EQ(body["messages"][1]["tool_calls"][0]["id"], "call00001");
  EXPECT_EQ(body["messages"][2]["tool_call_id"], "call00001");
  EXPECT_FALSE(body.contains("tool_choice"));
  chat_options options{"m", server_kind::sglang};
  body = ordered_json::parse(render_by_chat_body(*view, options));
  EXPECT_EQ(body["tools"][0]["function"]["parameters"].dump(), schema);
  EXPECT_EQ(body["tool_choice"], "auto");
  EXPECT_EQ(body["max_tokens"], 1);
  // In the place of an answer that is to be found by its end there are no calls.
  std::string placeholder = "one";
  body = ordered_json::parse(tokenize_body(*view, "m", &placeholder));
  EXPECT_EQ(body["messages"][1]["content"], "one");
  EXPECT_FALSE(body["messages"][1].contains("tool_calls"));
  EXPECT_EQ(body["messages"][2]["tool_call_id"], "call00001");
}

TEST(tools_in_requests, marks_of_calls_stay_in_the_text_of_ids) {
  auto request = request_of();
  std::vector<int32_t> ids{1};
  auto body = [&](server_kind kind) {
    return json::parse(generate_body(kind, *request.open(), ids, "m", "r"));
  };
  EXPECT_EQ(body(server_kind::sglang)["sampling_params"]["skip_special_tokens"], false);
  EXPECT_EQ(body(server_kind::llamacpp)["preserved_tokens"][0], "<tool_call>");
}

// -- answers ----------------------------------------------------------------------------------

completion_answer plain(const std::string& message) {
  auto x = parse_chat_response(R"({"choices":[{"message":)" + message + "}]}");
  EXPECT_TRUE(x);
  return x.value_or(completion_answer{});
}

completion_answer streamed(const std::vector<std::string>& deltas,
                           const std::string& finish = "tool_calls") {
  chat_stream stream;
  for (const auto& x : deltas)
    EXPECT_TRUE(stream.feed("data: {\"choices\":[{\"delta\":" + x + "}]}\n\n"));
  stream.feed("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" + finish +
              "\"}]}\n\ndata: [DONE]\n\n");
  auto x = stream.finish();
  EXPECT_TRUE(x);
  return x.value_or(completion_answer{});
}

using calls = std::vector<tool_call>;

TEST(tools_in_answers, calls_are_read_in_order) {
  auto x = plain(R"({"content":"so","tool_calls":[
    {"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\": 1}"}},
    {"id":"b","type":"","index":0,"function":{"name":"g","arguments":{"n":[2,"x"]}}},
    {"function":{"name":"h"}}]})");
  EXPECT_EQ(x.calls,
            (calls{{"a", "f", "{\"n\": 1}"}, {"b", "g", R"({"n":[2,"x"]})"}, {"", "h", ""}}));
  EXPECT_EQ(x.content, "so");
  EXPECT_EQ(plain(R"({"content":null,"function_call":{"name":"f","arguments":"{}"}})").calls,
            (calls{{"", "f", "{}"}}));
  // Of both the newer.
  EXPECT_EQ(plain(R"({"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],
    "function_call":{"name":"f","arguments":"{}"}})")
                .calls.size(),
            1u);
}

TEST(tools_in_answers, pieces_of_a_stream_belong_to_their_index) {
  auto x = streamed({
      R"({"role":"assistant","content":null})",
      R"({"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]})",
      R"({"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"m"}}]})",
      R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":"}},{"index":1,"function":{"arguments":"\":2}"}}]})",
      R"({"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":" 1}"}}]})",
  });
  EXPECT_EQ(x.calls, (calls{{"a", "f", "{\"n\": 1}"}, {"b", "g", "{\"m\":2}"}}));
}

TEST(tools_in_answers, streams_without_numbers_or_with_one_for_all_are_read) {
  // Ollama's, whole calls that were all numbered 0.
  auto x = streamed(
      {R"({"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":"{}"}}]})",
       R"({"tool_calls":[{"id":"b","index":0,"function":{"name":"f","arguments":"{}"}}]})"},
      "stop");
  EXPECT_EQ(x.calls, (calls{{"a", "f", "{}"}, {"b", "f", "{}"}}));
  x = streamed({R"({"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\""}}]})",
                R"({"tool_calls":[{"function":{"arguments":":1}"}}]})",
                R"({"tool_calls":[{"function":{"name":"g","arguments":{"k":1}}}]})"});
  EXPECT_EQ(x.calls, (calls{{"a", "f", "{\"n\":1}"}, {"", "g", "{\"k\":1}"}}));
  x = streamed({R"({"function_call":{"name":"f","arguments":"{\"n\""}})",
                R"({"function_call":{"arguments":":1}"}})"},
               "function_call");
  EXPECT_EQ(x.calls, (calls{{"", "f", "{\"n\":1}"}}));
}

TEST(tools_in_answers, arguments_count_as_text_does) {
  chat_stream stream{1000};
  std::string piece =
      R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":")" +
      std::string(300, 'x') + "\"}}]}}]}\n\n";
  int taken = 0;
  while (taken < 100 && stream.feed(piece)) ++taken;
  EXPECT_EQ(taken, 3);
  EXPECT_TRUE(stream.too_large());
}

TEST(tools_in_answers, of_more_calls_than_are_taken_the_first_are_kept) {
  std::vector<std::string> deltas;
  std::string list;
  for (int i = 0; i < 3000; ++i) {
    auto call = R"({"id":"i)" + std::to_string(i) + R"(","index":)" + std::to_string(i) +
                R"(,"function":{"name":"f","arguments":"{}"}})";
    list += (i == 0 ? "" : ",") + call;
    deltas.push_back(R"({"tool_calls":[)" + call + "]}");
  }
  for (const auto& x :
       {plain(R"({"content":null,"tool_calls":[)" + list + "]}"), streamed(deltas)}) {
    EXPECT_EQ(x.calls.size(), max_tool_calls);
    EXPECT_EQ(x.surplus_calls, 3000 - max_tool_calls);
    EXPECT_EQ(x.calls.back().arguments, "{}");
  }
}

TEST(tools_in_answers, without_tools_calls_are_words_as_before) {
  auto x =
      plain(R"({"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},
    {"id":"b","function":{"name":"g","arguments":"{}"}}]})");
  EXPECT_EQ(full_text(x), "f {}\ng {}");
  auto result = completed_result(x, "r", 1, 0);
  EXPECT_EQ(result.open()->getCalls().size(), 0u);
  EXPECT_FALSE(swallowed_hint(x, server_kind::vllm).empty());
}

TEST(tools_in_answers, with_tools_the_result_has_calls_with_ids_of_their_own) {
  auto request = request_of();
  auto x = plain(R"({"content":null,"reasoning_content":"hm","tool_calls":[
    {"function":{"name":"f","arguments":"{}"}},
    {"id":"call00001","function":{"name":"g","arguments":"{"}},
    {"id":"mine","function":{"name":"h","arguments":"{}"}},
    {"id":"mine","function":{"name":"i","arguments":"{}"}}]})");
  settle_calls(x, *request.open());
  EXPECT_TRUE(swallowed_hint(x, server_kind::vllm).empty());
  auto result = completed_result(x, "r", 1, 0);
  auto view = result.open();
  EXPECT_STREQ(view->getText().cStr(), "<think>\nhm\n</think>\n");
  std::vector<std::string> ids, names;
  for (auto call : view->getCalls()) {
    ids.emplace_back(call.getId().cStr());
    names.emplace_back(call.getName().cStr());
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"call00002", "call00003", "mine", "call00005"}));
  EXPECT_EQ(names, (std::vector<std::string>{"f", "g", "h", "i"}));
  EXPECT_STREQ(view->getCalls()[1].getArguments().cStr(), "{");
}

TEST(tools_in_answers, calls_that_no_server_read_are_read_out_of_the_text) {
  auto request = request_of();
  completion_answer x;
  x.content = "<think>a</think>\nso\n<tool_call>{\"name\": \"bench\"}</tool_call>";
  settle_calls(x, *request.open());
  EXPECT_EQ(x.calls, (calls{{"call00002", "bench", "{}"}}));
  EXPECT_EQ(full_text(x), "<think>a</think>\nso");
  // What is broken stays: the episode can say why.
  x = {};
  x.content = "<tool_call>{\"name\": }</tool_call>";
  settle_calls(x, *request.open());
  EXPECT_EQ(full_text(x), "<tool_call>{\"name\": }</tool_call>");
  EXPECT_TRUE(x.calls.empty());
}

TEST(tools_in_answers, a_key_is_hidden_in_calls_too) {
  completion_answer x;
  x.calls = {{"id-SECRETKEY", "f-SECRETKEY", "{\"k\":\"SECRETKEY\"}"}};
  std::string words = "SECRETKEY";
  hide(secret{words}, x);
  for (const auto& text : {x.calls[0].id, x.calls[0].name, x.calls[0].arguments})
    EXPECT_EQ(text.find("SECRETKEY"), std::string::npos) << text;
}

// -- whose doing it is ------------------------------------------------------------------------

attempt_signal signal_of(const std::string& message, bool tools) {
  http_response response;
  response.status = 200;
  response.body = R"({"choices":[{"message":)" + message + R"(,"finish_reason":"stop"}]})";
  auto result = read_attempt(response, parse_chat_response).signal;
  result.tools = tools;
  return result;
}

TEST(classify_tools, an_answer_of_calls_alone_is_one_where_tools_were_asked_for) {
  auto only = R"({"content":null,"tool_calls":[{"id":"1","function":{"name":"f"}}]})";
  EXPECT_EQ(classify(signal_of(only, true), {}, 0).action, attempt_action::answer);
  auto without = classify(signal_of(only, false), {}, 0);
  EXPECT_EQ(without.fault.category, "policy_tool_calls");
  EXPECT_EQ(without.fault.cls, fault_class::policy);
}

TEST(classify_tools, too_many_calls_are_the_policys_doing) {
  auto x = signal_of(R"({"content":"c"})", true);
  x.surplus_calls = 76;
  auto decision = classify(x, {}, 0);
  EXPECT_EQ(decision.fault.cls, fault_class::policy);
  EXPECT_NE(decision.fault.message.find("1100 calls"), std::string::npos);
}

// llama.cpp's answer to arguments that are no JSON: another draw would be the model's to choose.
TEST(classify_tools, a_call_that_breaks_the_servers_parser_is_the_policys_doing) {
  attempt_signal x;
  x.status = 500;
  x.server.message = "Failed to parse tool call arguments as JSON: unexpected end";
  x.tools = true;
  auto decision = classify(x, {}, 0);
  EXPECT_EQ(decision.fault.cls, fault_class::policy);
  EXPECT_EQ(decision.fault.category, "bad_tool_call");
  x.tools = false;
  EXPECT_EQ(classify(x, {}, 0).action, attempt_action::retry);
  x.tools = true;
  x.server.message = "it said: Failed to parse tool call arguments";
  EXPECT_EQ(classify(x, {}, 0).action, attempt_action::retry);
}

TEST(classify_tools, a_server_without_a_parser_of_calls_is_the_configurations_fault) {
  attempt_history known{true, 0};
  for (long status : {400, 500})
    for (const char* words : {"\"auto\" tool choice requires --enable-auto-tool-choice and "
                              "--tool-call-parser to be set",
                              "tools param requires --jinja flag"}) {
      attempt_signal x;
      x.status = status;
      x.server.message = words;
      x.tools = true;
      auto decision = classify(x, known, 0);
      EXPECT_EQ(decision.fault.cls, fault_class::configuration) << words;
      EXPECT_TRUE(decision.stops_admission);
      EXPECT_NE(decision.fault.hint.find("tools.calls=text"), std::string::npos);
      // A server that quotes what it was sent says nothing of itself.
      x.server.message = "failed to parse: " + x.server.message;
      EXPECT_EQ(classify(x, known, 0).fault.cls, fault_class::infrastructure);
    }
}

} // namespace chat_tools_test
} // namespace kernelmill
