#include <gtest/gtest.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/protocol/openai_protocol.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace openai_protocol_test {

using nlohmann::json;

Message<wire::CompletionRequest> request(bool logprobs = false, const char* content = "hello") {
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    x.setSession("run/g3.e1");
    auto messages = x.initMessages(2);
    messages[0].setRole("system");
    messages[0].setContent("be brief");
    messages[1].setRole("user");
    messages[1].setContent(content);
    auto sampling = x.initSampling();
    sampling.setTemperature(0.7);
    sampling.setMaxTokens(123);
    sampling.setSeed(42);
    sampling.setLogprobs(logprobs);
    sampling.initStop(1).set(0, "</KERNEL>");
  });
}

json body_of(const chat_options& options, bool logprobs = false) {
  auto message = request(logprobs);
  auto view = message.open();
  return json::parse(chat_body(*view, options));
}

TEST(chat_body, says_what_the_request_says) {
  auto body = body_of({"m", server_kind::openai, false, "max_tokens"}, true);
  EXPECT_EQ(body, json::parse(R"({"model":"m","messages":[{"role":"system","content":"be brief"},
    {"role":"user","content":"hello"}],"temperature":0.7,"top_p":1.0,"max_tokens":123,"seed":42,
    "stop":["</KERNEL>"],"logprobs":true})"));
}

TEST(chat_body, asks_vllm_for_token_ids_and_neutral_sampling) {
  auto body = body_of({"m", server_kind::vllm, true, "max_tokens"});
  EXPECT_EQ(body["return_token_ids"], true);
  EXPECT_EQ(body["top_k"], -1);
  EXPECT_EQ(body["repetition_penalty"], 1.0);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_FALSE(body.contains("logprobs"));
}

TEST(chat_body, asks_sglang_for_token_ids_where_it_does_not_stream) {
  EXPECT_EQ(body_of({"m", server_kind::sglang, false, "max_tokens"})["return_token_ids"], true);
  EXPECT_FALSE(
      body_of({"m", server_kind::sglang, true, "max_tokens"}).contains("return_token_ids"));
}

TEST(chat_body, switches_off_the_sampling_defaults_of_llamacpp) {
  auto body = body_of({"m", server_kind::llamacpp, false, "max_tokens"});
  EXPECT_EQ(body["top_k"], 0);
  EXPECT_EQ(body["min_p"], 0.0);
  EXPECT_EQ(body["repeat_penalty"], 1.0);
}

TEST(chat_body, asks_llamacpp_for_no_tokens_beside_the_sampled_ones) {
  EXPECT_EQ(body_of({"m", server_kind::llamacpp, false, "max_tokens", true})["top_logprobs"], 1);
  EXPECT_FALSE(
      body_of({"m", server_kind::vllm, false, "max_tokens", true}).contains("top_logprobs"));
}

TEST(chat_body, replaces_bytes_that_are_not_utf8) {
  auto message = request(false, "a\xff"
                                "b");
  auto view = message.open();
  auto body = json::parse(chat_body(*view, {"m", server_kind::openai, false, "max_tokens"}));
  EXPECT_EQ(body["messages"][1]["content"], "a\xEF\xBF\xBD"
                                            "b");
}

TEST(parse_chat_response, reads_text_usage_and_logprobs) {
  auto x = parse_chat_response(R"({"model":"m","choices":[{"message":{"content":"hi"},
    "finish_reason":"stop","logprobs":{"content":[{"token":"token_id:5","logprob":-1.5}]}}],
    "usage":{"prompt_tokens":9,"completion_tokens":1},"prompt_token_ids":[3,4]})");
  ASSERT_TRUE(x);
  EXPECT_EQ(full_text(*x), "hi");
  EXPECT_EQ(x->finish_reason, "stop");
  EXPECT_EQ(x->token_ids, std::vector<int32_t>{5});
  EXPECT_EQ(x->prompt_token_ids, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(x->logprobs, std::vector<float>{-1.5f});
  EXPECT_EQ(x->prompt_tokens, 9u);
}

TEST(parse_chat_response, puts_a_split_thought_back_in_front) {
  auto x = parse_chat_response(
      R"({"choices":[{"message":{"content":"c","reasoning_content":"r"},"finish_reason":"stop"}]})");
  ASSERT_TRUE(x);
  EXPECT_EQ(full_text(*x), "<think>\nr\n</think>\nc");
}

TEST(parse_chat_response, drops_logprobs_that_do_not_match_the_ids) {
  auto x = parse_chat_response(R"({"choices":[{"message":{"content":"c"},"token_ids":[1,2,3],
    "logprobs":{"content":[{"logprob":-1}]}}]})");
  ASSERT_TRUE(x);
  EXPECT_TRUE(x->logprobs.empty());
  EXPECT_TRUE(x->logprobs_dropped);
  EXPECT_EQ(x->token_ids.size(), 3u);
}

// As llama.cpp's build 11549 answered with a stop text "ab": of ten tokens it told five.
TEST(parse_chat_response, ids_that_the_logprobs_tell_in_part_are_none) {
  auto entry = [](int id) {
    return json{{"id", id}, {"token", "b"}, {"bytes", {98}}, {"logprob", -0.7}};
  };
  json body{{"choices",
             {{{"finish_reason", "stop"},
               {"message", {{"role", "assistant"}, {"content", "bbaaaaaa"}}},
               {"logprobs",
                {{"content", {entry(101), entry(101), entry(100), entry(100), entry(100)}}}}}}},
            {"usage", {{"completion_tokens", 10}, {"prompt_tokens", 24}}}};
  auto x = parse_chat_response(body.dump());
  ASSERT_TRUE(x);
  EXPECT_TRUE(x->token_ids.empty());
  EXPECT_TRUE(x->logprobs.empty());
  EXPECT_TRUE(x->logprobs_dropped);
  body["usage"]["completion_tokens"] = 5;
  EXPECT_EQ(parse_chat_response(body.dump())->token_ids.size(), 5u);
}

TEST(parse_chat_response, reads_the_ids_that_sglang_has_in_the_choice) {
  auto x = parse_chat_response(R"({"choices":[{"message":{"content":"c"},"prompt_token_ids":[9],
    "response_token_ids":[1,2],"logprobs":{"content":[{"token":"a","logprob":-1},
    {"token":"b","logprob":-2}]}}]})");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->prompt_token_ids, (std::vector<int32_t>{9}));
  EXPECT_EQ(x->token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(x->logprobs.size(), 2u);
}

TEST(parse_chat_response, takes_null_content_and_a_missing_finish_reason) {
  auto x = parse_chat_response(R"({"choices":[{"message":{"content":null}}]})");
  ASSERT_TRUE(x);
  EXPECT_EQ(full_text(*x), "");
}

TEST(parse_chat_response, joins_the_texts_of_content_in_parts) {
  auto x = parse_chat_response(R"({"choices":[{"message":{"content":[{"type":"text","text":"a "},
    {"type":"image_url","image_url":{}},{"type":"text","text":"b"}]}}]})");
  ASSERT_TRUE(x);
  EXPECT_EQ(full_text(*x), "a b");
  EXPECT_TRUE(x->calls.empty());
}

TEST(parse_chat_response, knows_calls_of_tools) {
  auto x = parse_chat_response(R"({"choices":[{"message":{"content":null,
    "tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}}]})");
  ASSERT_TRUE(x);
  EXPECT_FALSE(x->calls.empty());
  x = parse_chat_response(R"({"choices":[{"message":{"content":"c","tool_calls":[]}}]})");
  ASSERT_TRUE(x);
  EXPECT_TRUE(x->calls.empty());
}

TEST(parse_chat_response, tells_errors_from_garbage) {
  for (const auto* body : {"", "{}", "[]", "null", "{\"choices\":[]}", "{\"choices\":[1]}", "\xff",
                           "{\"choices\":{}}", "<html>"}) {
    auto x = parse_chat_response(body);
    ASSERT_FALSE(x) << body;
    EXPECT_FALSE(x.error().from_server) << body;
  }
  auto x = parse_chat_response(R"({"error":{"message":"dead"}})");
  ASSERT_FALSE(x);
  EXPECT_TRUE(x.error().from_server);
}

TEST(parse_chat_response, survives_every_truncation_and_wrong_types) {
  std::string body = R"({"model":7,"choices":[{"message":{"content":[1]},"finish_reason":
    {"type":"abort"},"logprobs":{"content":[{"logprob":"x"},3]},"token_ids":["a",-1,4294967296]}],
    "usage":{"prompt_tokens":-5,"completion_tokens":1e99}})";
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(parse_chat_response(std::string_view{body}.substr(0, size)));
  auto x = parse_chat_response(body);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->finish_reason, "abort");
  EXPECT_TRUE(x->token_ids.empty());
  EXPECT_EQ(x->prompt_tokens, 0u);
  EXPECT_EQ(x->completion_tokens, 0u);
}

TEST(parse_error_body, understands_every_shape) {
  EXPECT_EQ(parse_error_body(R"({"error":{"message":"a","type":"t","code":"c"}})").code, "c");
  EXPECT_EQ(parse_error_body(R"({"error":{"message":"a","code":429}})").code, "429");
  EXPECT_EQ(parse_error_body(R"({"error":"plain"})").message, "plain");
  auto sglang = parse_error_body(
      R"({"object":"error","message":"full","type":"ServiceUnavailable","param":null,"code":503})");
  EXPECT_EQ(sglang.message, "full");
  EXPECT_EQ(sglang.code, "503");
  EXPECT_EQ(parse_error_body(R"({"detail":"Not Found"})").message, "Not Found");
  EXPECT_NE(parse_error_body(R"({"detail":[{"loc":["body"],"msg":"bad"}]})").message.find("bad"),
            std::string::npos);
  EXPECT_EQ(parse_error_body("<h1>502\n\n Bad\x1b Gateway</h1>").message,
            "<h1>502 Bad Gateway</h1>");
  EXPECT_EQ(parse_error_body("").message, "");
  EXPECT_LE(parse_error_body(std::string(1 << 20, 'x')).message.size(), 500u);
}

TEST(is_context_overflow, knows_the_phrases_of_the_servers) {
  for (const auto* text :
       {"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "the request exceeds the available context size, try increasing it"})
    EXPECT_TRUE(is_context_overflow({text, {}, {}})) << text;
  EXPECT_TRUE(is_context_overflow({"x", "exceed_context_size_error", {}}));
  EXPECT_TRUE(is_context_overflow({"x", {}, "context_length_exceeded"}));
  EXPECT_FALSE(is_context_overflow({"temperature must be positive", {}, {}}));
}

TEST(attempt_headers, name_session_attempt_and_trace) {
  auto id = attempt_id("run/g3.e1", 2, 1, "");
  EXPECT_EQ(id, "run/g3.e1.t2.a1");
  EXPECT_EQ(attempt_id("r", 0, 3, "x\r\ny"), "r.t0.a3-x__y");
  envelope env;
  env.trace = 5;
  std::map<std::string, std::string> headers;
  for (auto& [name, value] : attempt_headers("run/g3.e1", id, env)) headers[name] = value;
  EXPECT_EQ(headers["X-Request-Id"], id);
  EXPECT_EQ(headers["X-Session-ID"], "run/g3.e1");
  EXPECT_EQ(headers["X-SMG-Routing-Key"], "run/g3.e1");
  EXPECT_EQ(headers["traceparent"].size(), 55u);
  // One trace an episode, whatever the turn; one span an attempt.
  auto parent_of = [&](uint64_t episode, uint64_t trace, const std::string& request) {
    envelope other;
    other.episode = episode;
    other.trace = trace;
    for (auto& [name, value] : attempt_headers("run/g3.e1", request, other))
      if (name == "traceparent") return value;
    return std::string{};
  };
  EXPECT_EQ(headers["traceparent"], parent_of(0, 6, id));
  EXPECT_EQ(headers["traceparent"].substr(0, 36), parent_of(0, 6, "other").substr(0, 36));
  EXPECT_NE(headers["traceparent"].substr(36), parent_of(0, 6, "other").substr(36));
  EXPECT_NE(headers["traceparent"].substr(0, 36), parent_of(1, 5, id).substr(0, 36));
}

TEST(completed_result, keeps_ids_and_logprobs_in_the_message) {
  completion_answer answer;
  answer.content = "text";
  answer.token_ids = {1, 2};
  answer.logprobs = {-0.25f, -1.f};
  auto message = completed_result(answer, "id", 3, 1.5);
  auto x = message.open();
  EXPECT_STREQ(x->getText().cStr(), "text");
  EXPECT_EQ(x->getAttempts(), 3u);
  ASSERT_EQ(x->getLogprobs().size(), 2u);
  EXPECT_EQ(x->getLogprobs()[1], -1.f);
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
}

TEST(parse_error_body, outlives_a_server_that_nests_a_million_lists) {
  auto deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  for (const std::string key : {"{\"error\":{\"message\":", "{\"detail\":", "{\"choices\":"}) {
    auto body = key + deep + (key.find("error") == key.npos ? "}" : "}}");
    EXPECT_LE(parse_error_body(body).message.size(), 500u);
    EXPECT_FALSE(parse_chat_response(body));
  }
}

} // namespace openai_protocol_test
} // namespace kernelmill
