#include <cmath>

#include <gtest/gtest.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/protocol/mended_json.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace mended_json_test {

std::string chat(const std::string& content) {
  return R"({"choices":[{"message":{"content":")" + content + R"("},"finish_reason":"stop"}]})";
}

http_response ok(std::string body) {
  http_response x;
  x.status = 200;
  x.body = std::move(body);
  return x;
}

// What no JSON may hold, and what becomes of it.
TEST(mended_json, words_that_are_no_text_are_read_and_named) {
  struct row {
    const char* sent;
    const char* read;
  };
  for (auto [sent, read] :
       {row{R"(a\ud800b)", "a\uFFFDb"}, row{R"(a\udc00)", "a\uFFFD"},
        row{R"(\ud83d\ud83d\ude00)", "\uFFFD\U0001F600"}, row{R"(\uD800)", "\uFFFD"},
        row{"a\xff\xfe", "a\uFFFD\uFFFD"}, row{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"}}) {
    SCOPED_TRACE(read);
    auto x = parse_chat_response(chat(sent));
    ASSERT_TRUE(x) << x.error().error.message;
    EXPECT_EQ(x->content, read);
    EXPECT_TRUE(x->broken_text);
    auto decision = classify(read_attempt(ok(chat(sent)), parse_chat_response).signal, {}, 0);
    EXPECT_EQ(decision.fault.cls, fault_class::policy);
    EXPECT_EQ(decision.fault.category, "answer_not_text");
  }
}

TEST(mended_json, what_a_server_forgot_to_escape_is_text_all_the_same) {
  for (const auto* sent : {"a\nb", "a\x01", R"(a\x)", R"(\u12)", R"(\uzzzz)"}) {
    auto x = parse_chat_response(chat(sent));
    ASSERT_TRUE(x) << sent;
    EXPECT_FALSE(x->broken_text) << sent;
  }
  EXPECT_EQ(parse_chat_response(chat("a\nb"))->content, "a\nb");
  EXPECT_EQ(parse_chat_response("\xEF\xBB\xBF" + chat("a"))->content, "a");
}

TEST(mended_json, numbers_that_are_none_are_unknown) {
  auto x = parse_chat_response(
      R"({"choices":[{"message":{"content":"NaN and Infinity"},"logprobs":{"content":[
        {"token":"a","logprob":NaN},{"token":"b","logprob":-Infinity},{"logprob":-0.5}]}}],
        "usage":{"prompt_tokens":Infinity}})");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->content, "NaN and Infinity");
  ASSERT_EQ(x->logprobs.size(), 3u);
  EXPECT_TRUE(std::isnan(x->logprobs[0]) && std::isnan(x->logprobs[1]));
  EXPECT_EQ(x->logprobs[2], -0.5f);
}

TEST(mended_json, a_broken_token_beside_whole_words_breaks_nothing) {
  auto x = parse_chat_response("{\"choices\":[{\"message\":{\"content\":\"a\uFFFD\"},\"logprobs\":"
                               "{\"content\":[{\"token\":\"\xff\",\"logprob\":-1}]}}]}");
  ASSERT_TRUE(x);
  EXPECT_FALSE(x->broken_text);
}

TEST(mended_json, leaves_json_as_it_is) {
  for (std::string text : {R"({"a":["\ud83d\ude00",1e5,null,"\\u","\"",{"b":"\/é"}]})", "[]", ""})
    EXPECT_EQ(mended_json(text), text);
}

TEST(parse_chat_response, takes_no_words_and_words_of_other_names) {
  auto none =
      parse_chat_response(R"({"choices":[{"message":{"content":null},"finish_reason":"stop"}]})");
  ASSERT_TRUE(none);
  EXPECT_EQ(full_text(*none), "");
  auto refused = parse_chat_response(
      R"({"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]})");
  EXPECT_EQ(full_text(*refused), "No.");
}

TEST(read_attempt, a_completion_that_cannot_be_read_is_told_from_a_page) {
  auto whose = [](const std::string& body) {
    return classify(read_attempt(ok(body), parse_chat_response).signal, {}, 0).fault.category;
  };
  EXPECT_EQ(whose(chat("a").substr(0, 40)), "answer_unreadable");
  EXPECT_EQ(whose(R"({"choices":[]})"), "answer_unreadable");
  EXPECT_EQ(whose("<html>down for maintenance</html>"), "policy_bad_response");
  EXPECT_EQ(whose(R"({"status":"ok"})"), "policy_bad_response");
  EXPECT_EQ(whose(R"({"error":{"message":"no"}})"), "policy_aborted");
}

TEST(room_for_answer, is_read_from_what_servers_say) {
  struct row {
    const char* said;
    uint32_t asked;
    std::optional<uint32_t> room;
  };
  const row rows[] = {
      {"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
       "(3000 in the messages, 2000 in the completion). Please reduce the length.",
       2000, 1096},
      {"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
       "length is 4096 tokens and your request has 21 input tokens (4096 > 4096 - 21).",
       4096, 4075},
      {"This model's maximum context length is 4096 tokens. However, you requested 2000 output "
       "tokens and your prompt contains at least 2097 input tokens, for a total of at least 4097 "
       "tokens.",
       2000, 1000},
      {"Requested token count exceeds the model's maximum context length of 4096 tokens. You "
       "requested a total of 5000 tokens: 3000 tokens from the input messages and 2000 tokens for "
       "the completion.",
       2000, 1096},
      {"The maximum context length is 4096. You requested a total of 5000 tokens.", 2000, 1096},
      {"max_tokens is too large: 40000. This model supports at most 16384 completion tokens, "
       "whereas you provided 40000.",
       40000, 16384},
      {"This model's maximum context length is 4096 tokens. However, you requested 7000 tokens "
       "(5000 in the messages, 2000 in the completion).",
       2000, std::nullopt},
      {"the request exceeds the available context size", 2000, std::nullopt},
      {"This model's maximum context length is 4096 tokens", 2000, std::nullopt},
      {"temperature must be positive", 2000, std::nullopt},
  };
  for (const auto& x : rows)
    EXPECT_EQ(room_for_answer({x.said, {}, {}}, x.asked), x.room) << x.said;
}

TEST(swallowed_hint, names_the_flag_of_the_server) {
  completion_answer x;
  x.reasoning = "all of it";
  x.finish_reason = "stop";
  EXPECT_NE(swallowed_hint(x, server_kind::vllm).find("--reasoning-parser"), std::string::npos);
  EXPECT_NE(swallowed_hint(x, server_kind::llamacpp).find("--reasoning-format none"),
            std::string::npos);
  x.content = " \n";
  EXPECT_FALSE(swallowed_hint(x, server_kind::openai).empty());
  x.finish_reason = "length"; // it thought until its end
  EXPECT_TRUE(swallowed_hint(x, server_kind::vllm).empty());
  x.content = "here it is";
  x.finish_reason = "stop";
  x.calls.push_back({"1", "f", "{}"});
  EXPECT_TRUE(swallowed_hint(x, server_kind::vllm).empty());
  x.content.clear();
  EXPECT_NE(swallowed_hint(x, server_kind::vllm).find("--enable-auto-tool-choice"),
            std::string::npos);
}

} // namespace mended_json_test
} // namespace kernelmill
