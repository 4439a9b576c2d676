#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "actors/policy_client/protocol/json_view.hpp"
#include "actors/policy_client/token_exchange.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace token_protocol_test {

using nlohmann::json;
using ids = std::vector<int32_t>;

Message<wire::CompletionRequest> request_of(const ids& thread = {}, uint32_t sampled = 0,
                                            bool stop = false) {
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    auto messages = x.initMessages(thread.empty() ? 1 : 3);
    messages[0].setRole("user");
    messages[0].setContent("do it");
    if (!thread.empty()) {
      messages[1].setRole("assistant");
      messages[1].setContent("done");
      messages[2].setRole("user");
      messages[2].setContent("again");
    }
    x.setThreadIds(kj::arrayPtr(thread.data(), thread.size()));
    x.setThreadSampled(sampled);
    x.initSampling().setMaxTokens(7);
    if (stop) x.getSampling().initStop(1).set(0, "END");
  });
}

http_response ok(const json& body) {
  http_response x;
  x.status = 200;
  x.body = body.dump();
  return x;
}

http_response status(long code) {
  http_response x;
  x.status = code;
  x.body = R"({"detail":"Not Found"})";
  return x;
}

chat_options options(server_kind kind) {
  return {"m", kind, false, "max_tokens", true};
}

json tokens(const ids& x) {
  return {{"count", x.size()}, {"tokens", x}};
}

json generated(const ids& x, const std::string& finish = "stop") {
  auto content = json::array();
  for (auto id : x) content.push_back({{"token", "?"}, {"logprob", -id / 10.0}});
  return {{"choices",
           {{{"token_ids", x}, {"finish_reason", finish}, {"logprobs", {{"content", content}}}}}}};
}

TEST(token_exchange, a_first_turn_is_rendered_generated_and_read_back) {
  token_exchange x{request_of(), options(server_kind::vllm)};
  auto first = x.next("r1");
  EXPECT_EQ(first.path, "tokenize");
  EXPECT_TRUE(json::parse(first.body)["add_generation_prompt"]);
  x.read(ok(tokens({1, 2, 3})));
  auto second = x.next("r1");
  EXPECT_EQ(second.path, "inference/v1/generate");
  auto body = json::parse(second.body);
  EXPECT_EQ(body["token_ids"], (ids{1, 2, 3}));
  EXPECT_EQ(body["request_id"], "r1");
  EXPECT_EQ(body["sampling_params"]["max_tokens"], 7);
  EXPECT_EQ(body["sampling_params"]["top_k"], -1);
  x.read(ok(generated({4, 5, 99})));
  auto third = x.next("r1");
  EXPECT_EQ(third.path, "detokenize");
  EXPECT_EQ(json::parse(third.body)["tokens"], (ids{4, 5})) << "without the mark of the end";
  auto end = x.read(ok({{"prompt", "hello"}}));
  EXPECT_FALSE(x.more());
  EXPECT_EQ(end.answer.content, "hello");
  EXPECT_EQ(end.answer.token_ids, (ids{4, 5, 99}));
  EXPECT_EQ(end.answer.prompt_token_ids, (ids{1, 2, 3}));
  EXPECT_EQ(end.answer.logprobs.size(), 3u);
  EXPECT_EQ(end.answer.route, "tokens");
}

TEST(token_exchange, a_rendering_that_goes_on_is_taken_as_it_is) {
  token_exchange x{request_of({1, 2, 3}, 1), options(server_kind::vllm)};
  x.read(ok(tokens({1, 2, 3, 4})));
  EXPECT_EQ(json::parse(x.next("r").body)["token_ids"], (ids{1, 2, 3, 4}));
}

TEST(token_exchange, a_rendering_that_departs_is_replaced_by_the_thread_and_what_follows) {
  token_exchange x{request_of({1, 2, 33, 99}, 2), options(server_kind::vllm)};
  x.read(ok(tokens({1, 2, 3, 4, 99, 50, 60})));
  auto a = json::parse(x.next("r").body)["messages"][1]["content"];
  x.read(ok(tokens({1, 2, 7, 99, 50, 60})));
  auto b = json::parse(x.next("r").body)["messages"][1]["content"];
  EXPECT_NE(a, b);
  x.read(ok(tokens({1, 2, 8, 9, 99, 50, 60})));
  EXPECT_EQ(json::parse(x.next("r").body)["token_ids"], (ids{1, 2, 33, 99, 50, 60}));
}

TEST(token_exchange, a_template_that_shows_no_answers_is_a_branch) {
  token_exchange x{request_of({1, 2, 33}, 1), options(server_kind::vllm)};
  for (int i = 0; i < 3; ++i) x.read(ok(tokens({1, 5, 6})));
  EXPECT_EQ(json::parse(x.next("r").body)["token_ids"], (ids{1, 5, 6}));
}

TEST(token_exchange, an_abort_is_asked_for_again_with_the_same_prompt) {
  token_exchange x{request_of(), options(server_kind::sglang)};
  EXPECT_EQ(x.next("r").path, "v1/tokenize");
  x.read(ok(tokens({1, 2})));
  auto aborted = x.read(ok({{"text", ""},
                            {"output_ids", ids{}},
                            {"meta_info", {{"finish_reason", {{"type", "abort"}}}}}}));
  EXPECT_EQ(classify(aborted.signal, {}, 0).fault.category, "policy_aborted");
  EXPECT_EQ(classify(aborted.signal, {}, 0).action, attempt_action::retry);
  EXPECT_TRUE(x.more());
  EXPECT_EQ(json::parse(x.next("r").body)["input_ids"], (ids{1, 2}));
}

TEST(token_exchange, an_abort_with_a_status_is_that_error) {
  token_exchange x{request_of(), options(server_kind::sglang)};
  x.read(ok(tokens({1, 2})));
  auto finish = [](int code, const char* why) {
    return json{{"type", "abort"}, {"status_code", code}, {"message", why}};
  };
  auto answer = [&](json reason) {
    return x
        .read(ok({{"text", ""}, {"output_ids", ids{}}, {"meta_info", {{"finish_reason", reason}}}}))
        .signal;
  };
  EXPECT_EQ(classify(answer(finish(503, "queue full")), {}, 0).fault.category,
            "policy_unavailable");
  EXPECT_EQ(classify(answer(finish(429, "slow down")), {}, 0).fault.category,
            "policy_rate_limited");
  EXPECT_EQ(
      classify(answer(finish(400, "longer than the model's context length")), {}, 0).fault.category,
      "context_overflow");
}

http_response chat(const char* finish, const ids& prompt = {}) {
  json body{{"choices", {{{"message", {{"content", "hi"}}}, {"finish_reason", finish}}}}};
  if (!prompt.empty()) body["prompt_token_ids"] = prompt;
  return ok(body);
}

TEST(token_exchange, a_server_that_tokenizes_no_messages_renders_by_a_chat_of_one_token) {
  token_exchange x{request_of({1, 2, 33, 99}, 2), options(server_kind::sglang)};
  EXPECT_EQ(classify(x.read(status(422)).signal, {}, 0).action, attempt_action::answer);
  EXPECT_EQ(x.next("r").path, "generate");
  EXPECT_EQ(x.next("r").body, "{}") << "nothing is sampled before it is known that ids are taken";
  http_response away;
  away.fault = transport_fault::refused;
  EXPECT_EQ(classify(x.read(away).signal, {}, 0).action, attempt_action::retry);
  EXPECT_EQ(x.next("r").path, "generate");
  EXPECT_EQ(classify(x.read(status(400)).signal, {}, 0).action, attempt_action::answer);
  auto whole = x.next("r");
  EXPECT_FALSE(whole.from_root);
  EXPECT_EQ(whole.path, "chat/completions");
  EXPECT_EQ(json::parse(whole.body)["max_tokens"], 1);
  EXPECT_EQ(json::parse(whole.body)["return_token_ids"], true);
  EXPECT_EQ(json::parse(whole.body)["messages"][1]["content"], "done");
  x.read(chat("length", {1, 2, 3, 99, 50}));
  EXPECT_NE(json::parse(x.next("r").body)["messages"][1]["content"], "done");
  EXPECT_EQ(classify(x.read(chat("abort", {7})).signal, {}, 0).action, attempt_action::retry);
  x.read(chat("length", {1, 2, 7, 99, 50}));
  x.read(chat("length", {1, 2, 8, 99, 50}));
  EXPECT_EQ(x.next("r").path, "generate");
  EXPECT_EQ(json::parse(x.next("r").body)["input_ids"], (ids{1, 2, 33, 99, 50}));
}

TEST(token_exchange, without_any_ids_it_says_so_and_asks_for_no_completion) {
  token_exchange x{request_of(), options(server_kind::sglang), true};
  x.read(status(404));
  EXPECT_EQ(json::parse(x.next("r").body)["max_tokens"], 1) << "it has completed ids before";
  x.read(chat("length"));
  EXPECT_NE(x.lacks().find("nor tells the ids of a prompt"), std::string::npos);
  EXPECT_EQ(json::parse(x.next("r").body)["max_tokens"], 1);
  x.read(chat("length", {1, 2}));
  EXPECT_EQ(x.lacks(), "");
  EXPECT_EQ(x.next("r").path, "generate");
}

TEST(token_exchange, a_server_of_chats_alone_is_told_before_anything_is_sampled) {
  token_exchange x{request_of(), options(server_kind::vllm)};
  x.read(status(404));
  EXPECT_EQ(x.next("r").path, "inference/v1/generate");
  auto end = x.read(status(404));
  EXPECT_EQ(x.lacks(), "the server has no /inference/v1/generate (it answered 404)");
  EXPECT_EQ(classify(end.signal, {}, 0).action, attempt_action::stop);
  EXPECT_EQ(classify(end.signal, {true, 0}, 0).action, attempt_action::retry) << "a restart";
  EXPECT_EQ(x.next("r").path, "inference/v1/generate");
}

TEST(token_exchange, a_missing_generate_route_is_told_and_a_full_server_is_asked_again) {
  token_exchange x{request_of(), options(server_kind::vllm)};
  x.read(ok(tokens({1, 2})));
  EXPECT_EQ(classify(x.read(status(503)).signal, {}, 0).action, attempt_action::retry);
  EXPECT_EQ(x.lacks(), "");
  EXPECT_EQ(x.next("r").path, "inference/v1/generate");
  x.read(status(404));
  EXPECT_NE(x.lacks(), "");
}

TEST(token_exchange, stop_texts_cut_the_text_but_not_the_ids) {
  token_exchange x{request_of({}, 0, true), options(server_kind::vllm)};
  x.read(ok(tokens({1})));
  x.read(ok(generated({4, 5, 6})));
  EXPECT_EQ(json::parse(x.next("r").body)["tokens"], (ids{4, 5, 6}));
  auto end = x.read(ok({{"prompt", "words END"}}));
  EXPECT_FALSE(x.more());
  EXPECT_EQ(end.answer.content, "words ");
  EXPECT_EQ(end.answer.token_ids, (ids{4, 5, 6}));
}

TEST(token_exchange, with_stop_texts_the_models_own_end_is_left_out_too) {
  token_exchange x{request_of({}, 0, true), options(server_kind::vllm)};
  x.read(ok(tokens({1})));
  x.read(ok(generated({4, 5, 99})));
  x.read(ok({{"prompt", "words<|end|>"}}));
  ASSERT_TRUE(x.more());
  EXPECT_EQ(json::parse(x.next("r").body)["tokens"], (ids{4, 5}));
  EXPECT_EQ(x.read(ok({{"prompt", "words"}})).answer.content, "words");
}

TEST(token_exchange, llamacpp_shows_the_text_then_its_ids_then_completes_them) {
  token_exchange x{request_of({}, 0, true), options(server_kind::llamacpp)};
  auto shown = x.next("r");
  EXPECT_EQ(shown.path, "apply-template");
  EXPECT_EQ(json::parse(shown.body)["messages"].size(), 1u);
  x.read(ok({{"prompt", "<user>do it\n<assistant>"}}));
  EXPECT_EQ(classify(x.read(status(503)).signal, {}, 0).action, attempt_action::retry);
  auto ids_of_text = x.next("r");
  EXPECT_EQ(ids_of_text.path, "tokenize");
  EXPECT_EQ(json::parse(ids_of_text.body), (json{{"content", "<user>do it\n<assistant>"},
                                                 {"add_special", true},
                                                 {"parse_special", true}}));
  x.read(ok(tokens({1, 2})));
  auto asked = x.next("r");
  EXPECT_EQ(asked.path, "completion");
  auto body = json::parse(asked.body);
  EXPECT_EQ(body["prompt"], (ids{1, 2}));
  EXPECT_EQ(body["n_predict"], 7);
  EXPECT_EQ(body["n_probs"], 1);
  EXPECT_EQ(body["return_tokens"], true);
  EXPECT_EQ(body["repeat_penalty"], 1.0);
  EXPECT_EQ(body["stop"], json{"END"});
  auto end = x.read(ok({{"content", "hi"}, {"tokens", ids{5, 3}}, {"stop_type", "word"}}));
  EXPECT_FALSE(x.more());
  EXPECT_EQ(end.answer.content, "hi");
  EXPECT_EQ(end.answer.finish_reason, "stop");
  EXPECT_EQ(end.answer.prompt_token_ids, (ids{1, 2}));
  EXPECT_EQ(end.answer.token_ids, (ids{5, 3}));
}

TEST(token_exchange, llamacpp_renders_each_of_the_three_conversations_in_two_steps) {
  token_exchange x{request_of({1, 2, 33, 99}, 2), options(server_kind::llamacpp)};
  std::vector<json> shown;
  for (auto rendered : {ids{1, 2, 3, 99, 50}, ids{1, 2, 7, 99, 50}, ids{1, 2, 8, 99, 50}}) {
    EXPECT_EQ(x.next("r").path, "apply-template");
    shown.push_back(json::parse(x.next("r").body)["messages"][1]["content"]);
    x.read(ok({{"prompt", "text"}}));
    EXPECT_EQ(x.next("r").path, "tokenize");
    x.read(ok(tokens(rendered)));
  }
  EXPECT_EQ(shown[0], "done");
  EXPECT_NE(shown[1], shown[2]);
  EXPECT_EQ(json::parse(x.next("r").body)["prompt"], (ids{1, 2, 33, 99, 50}));
}

TEST(token_exchange, a_llamacpp_without_templates_tells_no_ids) {
  token_exchange x{request_of(), options(server_kind::llamacpp)};
  x.read(status(404));
  EXPECT_EQ(x.next("r").path, "completion");
  x.read(status(400));
  x.read(chat("length"));
  EXPECT_NE(x.lacks(), "");
}

// As llama.cpp's build 11549 answered; the third id begins a character that the fourth ends.
TEST(parse_generated, llamacpp_tells_all_ids_but_not_all_of_their_probabilities) {
  auto body = R"({"index":0,"content":"EE\u00e9","tokens":[72,72,198,172],"id_slot":1,"stop":true,
    "model":"m","tokens_predicted":4,"tokens_evaluated":2,"stop_type":"limit","truncated":false,
    "completion_probabilities":[{"id":72,"token":"E","bytes":[69],"logprob":-0.75,"top_logprobs":[]},
    {"id":72,"token":"E","bytes":[69],"logprob":-0.5,"top_logprobs":[]},
    {"id":172,"token":"\u00e9","bytes":[195,169],"logprob":-1.25,"top_logprobs":[]}]})";
  auto x = parse_generated(server_kind::llamacpp, body);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->content, "EE\u00e9");
  EXPECT_EQ(x->finish_reason, "length");
  EXPECT_EQ(x->token_ids, (ids{72, 72, 198, 172}));
  EXPECT_TRUE(x->logprobs.empty());
  EXPECT_TRUE(x->logprobs_dropped);
  settle_version(*x, server_kind::llamacpp);
  EXPECT_EQ(x->weight_versions, (std::vector<weight_span>{{"m", 0, 4}}));
  EXPECT_FALSE(parse_generated(server_kind::llamacpp, R"({"content":"old","stop_type":"eos"})"));
}

TEST(parse_generated, keeps_logprobs_bit_by_bit) {
  for (float value : {-0.1f, -1.17549435e-38f, -12.3456789f, -0.0f, -3.4028234e38f}) {
    auto body = generated({1});
    body["choices"][0]["logprobs"]["content"][0]["logprob"] = static_cast<double>(value);
    auto x = parse_generated(server_kind::vllm, body.dump());
    ASSERT_TRUE(x);
    uint32_t a, b;
    std::memcpy(&a, &value, 4);
    std::memcpy(&b, &x->logprobs[0], 4);
    EXPECT_EQ(a, b) << value;
  }
}

TEST(weight_versions, are_ordered_clipped_and_never_overlap) {
  std::vector<weight_span> x;
  json_document said{R"({"weight_versions":[{"version":"b","start":4,"end":99},
                         {"version":"a","start":0,"end":6}, {"start":1}]})"};
  read_weight_versions(x, said.root());
  settle_weight_versions(x, 10);
  EXPECT_EQ(x, (std::vector<weight_span>{{"a", 0, 6}, {"b", 6, 10}}));
}

TEST(weight_versions, one_version_is_that_of_all_tokens) {
  std::vector<weight_span> x;
  json_document said{R"({"weight_version":42})"};
  read_weight_versions(x, said.root());
  settle_weight_versions(x, 3);
  EXPECT_EQ(x, (std::vector<weight_span>{{"42", 0, 3}}));
}

TEST(weight_versions, a_fingerprint_stands_for_one) {
  completion_answer x;
  x.model = "llama";
  x.fingerprint = "b123-abc";
  x.token_ids = {1, 2};
  auto y = x;
  settle_version(x, server_kind::llamacpp);
  EXPECT_EQ(x.weight_versions, (std::vector<weight_span>{{"llama@b123-abc", 0, 2}}));
  settle_version(y, server_kind::openai);
  EXPECT_EQ(y.weight_versions, (std::vector<weight_span>{{"b123-abc", 0, 2}}));
}

} // namespace token_protocol_test
} // namespace kernelmill
