#include <cmath>

#include <gtest/gtest.h>

#include "actors/policy_client/protocol/token_protocol.hpp"
#include "launch/server/scripted/scripted_kinds.hpp"
#include "launch/server/scripted/scripted_latency.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace scripted_kinds_test {

using nlohmann::json;
using ids = std::vector<int32_t>;

policy_script script_of(const std::string& more) {
  auto x = parse_policy_script(
      R"({"model":"m","replies":[{"text":"one  two\nthree"}])" + more + "}", "s", "/");
  if (!x) ADD_FAILURE() << render(x.error());
  return x ? *x : policy_script{};
}

const std::vector<scripted_message> talk = {{"system", "be brief"},
                                            {"user", "[task: t/a]\ndo it"},
                                            {"assistant", "<think>\nhm\n</think>\ndone"},
                                            {"user", "again, <|end|> of it"}};

TEST(vocabulary, turns_any_text_into_ids_and_back) {
  for (std::string text : {"", "a", "one  two\nthree ", "\xc3\xa9t\xc3\xa9 \xff\x00z"}) {
    EXPECT_EQ(vocabulary::decode(vocabulary::encode(text)), text);
    EXPECT_EQ(vocabulary::decode(vocabulary::encode(text, vocabulary::cut::sampled)), text);
  }
}

TEST(vocabulary, what_is_sampled_is_cut_in_another_way) {
  EXPECT_NE(vocabulary::encode("some words here"),
            vocabulary::encode("some words here", vocabulary::cut::sampled));
}

TEST(vocabulary, a_prompt_gives_its_messages_back) {
  auto prompt = vocabulary::render(talk, true, false);
  auto found = vocabulary::messages_in(prompt);
  ASSERT_EQ(found.size(), talk.size());
  for (size_t i = 0; i < talk.size(); ++i) {
    EXPECT_EQ(found[i].role, talk[i].role);
    EXPECT_EQ(found[i].content, talk[i].content) << "a mark in a text is a text";
  }
  EXPECT_EQ(vocabulary::encode_with_marks(
                vocabulary::decode(vocabulary::render({{"user", "hello"}}, true, false))),
            vocabulary::render({{"user", "hello"}}, true, false));
}

TEST(vocabulary, a_template_may_leave_out_thoughts) {
  auto found = vocabulary::messages_in(vocabulary::render(talk, true, true));
  EXPECT_EQ(found[2].content, "done");
}

TEST(scripted_kinds, vllm_takes_and_gives_ids) {
  auto script = script_of(R"(,"kind":"vllm","versions":[{"version":"step-1"}])");
  auto prompt = vocabulary::render(talk, true, false);
  auto body =
      json{{"token_ids", prompt}, {"sampling_params", {{"max_tokens", 99}, {"logprobs", 1}}}};
  auto request = read_request(scripted_route::vllm_generate, script, body.dump(), "run/g0.e1");
  ASSERT_TRUE(request) << render(request.error());
  EXPECT_EQ(request->task, "t/a");
  EXPECT_EQ(request->turn, 1u);
  EXPECT_EQ(request->member, 1u);
  request->version_before = request->version_after = "step-1";
  auto answer = answer_body(scripted_route::vllm_generate, *request, script.replies[0], "id", 0);
  auto parsed = parse_generated(server_kind::vllm, answer);
  ASSERT_TRUE(parsed) << parsed.error().error.message;
  EXPECT_EQ(parsed->token_ids.back(), vocabulary::message_end);
  EXPECT_EQ(vocabulary::decode(ids{parsed->token_ids.begin(), parsed->token_ids.end() - 1}),
            "one  two\nthree");
  ASSERT_EQ(parsed->logprobs.size(), parsed->token_ids.size());
  auto sampled = sample(*request, script.replies[0]);
  for (size_t i = 0; i < sampled.tokens.size(); ++i)
    EXPECT_EQ(static_cast<double>(parsed->logprobs[i]), sampled.tokens[i].logprob) << "bit by bit";
  ASSERT_EQ(parsed->weight_versions.size(), 1u);
  EXPECT_EQ(parsed->weight_versions[0],
            (weight_span{"step-1", 0, static_cast<uint32_t>(parsed->token_ids.size())}));
}

TEST(scripted_kinds, sglang_takes_ids_and_gives_text_too) {
  auto script = script_of(R"(,"kind":"sglang")");
  auto prompt = vocabulary::render(talk, true, false);
  auto body = json{{"input_ids", prompt},
                   {"return_logprob", true},
                   {"rid", "r1"},
                   {"sampling_params", {{"max_new_tokens", 3}}}};
  auto request = read_request(scripted_route::sglang_generate, script, body.dump(), "");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->request_id, "r1");
  request->version_before = "a";
  request->version_after = "b";
  auto parsed =
      parse_generated(server_kind::sglang, answer_body(scripted_route::sglang_generate, *request,
                                                       script.replies[0], "id", 0));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->finish_reason, "length");
  EXPECT_EQ(parsed->token_ids.size(), 3u);
  EXPECT_EQ(parsed->logprobs.size(), 3u);
  EXPECT_EQ(parsed->content, vocabulary::decode(parsed->token_ids));
  EXPECT_EQ(parsed->weight_versions, (std::vector<weight_span>{{"a", 0, 1}, {"b", 1, 3}}));
}

TEST(scripted_kinds, each_kind_has_its_own_routes) {
  EXPECT_EQ(completion_route(server_kind::openai, "/generate"), scripted_route::none);
  EXPECT_EQ(completion_route(server_kind::vllm, "/v1/chat/completions"), scripted_route::chat);
  auto ask = [](const char* kind, bool post, const char* path, const std::string& body = "{}") {
    return answer_side_route(script_of(",\"kind\":\"" + std::string{kind} + '"'), post, path, body,
                             "v");
  };
  EXPECT_EQ(ask("openai", false, "/version").status, 0);
  EXPECT_EQ(ask("vllm", false, "/version").status, 200);
  EXPECT_EQ(ask("vllm", false, "/props").status, 0);
  EXPECT_EQ(json::parse(ask("sglang", false, "/get_model_info").body)["weight_version"], "v");
  EXPECT_EQ(ask("llamacpp", false, "/props").status, 200);
  auto messages = R"({"messages":[{"role":"user","content":"hi"}]})";
  auto prompt = json::parse(ask("llamacpp", true, "/apply-template", messages).body)["prompt"];
  EXPECT_EQ(prompt, "<|start|>user\nhi<|end|>\n<|start|>assistant\n");
  auto marked =
      ask("llamacpp", true, "/tokenize", json{{"content", prompt}, {"parse_special", true}}.dump());
  EXPECT_EQ(json::parse(marked.body)["tokens"],
            json::parse(ask("vllm", true, "/tokenize", messages).body)["tokens"]);
}

TEST(scripted_kinds, an_older_sglang_renders_no_messages) {
  auto script = script_of(R"(,"kind":"sglang","renders":false)");
  auto messages = R"({"messages":[{"role":"user","content":"hi"}]})";
  EXPECT_EQ(answer_side_route(script, true, "/v1/tokenize", messages, "").status, 422);
  EXPECT_EQ(answer_side_route(script, true, "/v1/tokenize", R"({"prompt":"hi"})", "").status, 200);
}

TEST(scripted_latency, is_drawn_and_repeats) {
  scripted_latency x;
  x.kind = scripted_latency::shape::lognormal;
  x.median_ms = 100;
  x.sigma = 0.5;
  double logs = 0, squares = 0;
  constexpr int count = 4000;
  for (int i = 0; i < count; ++i) {
    auto y = std::log(wait_ms(x, static_cast<uint64_t>(i), 0) / 100);
    logs += y;
    squares += y * y;
  }
  EXPECT_NEAR(logs / count, 0, 0.04);
  EXPECT_NEAR(std::sqrt(squares / count), 0.5, 0.03);
  EXPECT_EQ(wait_ms(x, 7, 0), wait_ms(x, 7, 0));
  x = {};
  x.kind = scripted_latency::shape::uniform;
  x.low_ms = 10;
  x.high_ms = 20;
  x.per_token_ms = 2;
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_GE(wait_ms(x, i, 5), 20);
    EXPECT_LE(wait_ms(x, i, 5), 30);
  }
  x.max_ms = 15;
  EXPECT_EQ(wait_ms(x, 1, 100), 15);
}

TEST(policy_script, knows_kinds_latencies_and_versions) {
  auto x = script_of(R"(,"kind":"sglang","latency":{"kind":"uniform","low_ms":1,"high_ms":2},
                        "versions":[{"version":"a"},{"version":"b","from_request":9}],"drift":true)");
  EXPECT_EQ(x.kind, server_kind::sglang);
  EXPECT_EQ(x.latency.high_ms, 2);
  EXPECT_EQ(x.versions[1].from_request, 9u);
  EXPECT_TRUE(x.drift);
  for (auto bad : {R"(,"kind":"other")", R"(,"latency":{"kind":"odd"})", R"(,"versions":[{}])",
                   R"(,"latency":{"kind":"uniform","low_ms":5,"high_ms":2})",
                   R"(,"latency":{"ms":1},"latency_ms":1)"})
    EXPECT_FALSE(
        parse_policy_script(R"({"replies":[{"text":"x"}])" + std::string{bad} + "}", "s", "/"))
        << bad;
}

} // namespace scripted_kinds_test
} // namespace kernelmill
