#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "actors/policy_client/protocol/chat_stream.hpp"

namespace kernelmill {
namespace chat_stream_test {

const std::string words =
    R"(data: {"model":"m","prompt_token_ids":[1,2],"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

: ping

data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}

data: {"choices":[{"delta":{"content":"a \u20ac"},"logprobs":{"content":[{"token":"a","logprob":-0.5},{"token":"b","logprob":null}]},"token_ids":[7,8]}]}

data: {"choices":[{"delta":{},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3}}

data: [DONE]

)";

tl::expected<kernelmill::completion_answer, bad_answer> read(const std::string& text) {
  chat_stream stream;
  stream.feed(text);
  return stream.finish();
}

TEST(chat_stream, shows_its_end_while_it_comes) {
  chat_stream stream;
  EXPECT_EQ(stream.glimpse().bytes, 0U);
  auto say = [&](const std::string& field, const std::string& words) {
    EXPECT_TRUE(stream.feed("data: {\"choices\": [{\"index\": 0, \"delta\": {\"" + field +
                            "\": \"" + words + "\"}}]}\n\n"));
  };
  say("reasoning_content", "hm");
  EXPECT_EQ(stream.glimpse().tail, "hm");
  say("content", std::string(200, 'a') + "the end");
  auto seen = stream.glimpse();
  EXPECT_EQ(seen.bytes, 209U);
  EXPECT_EQ(seen.tail.size(), 160U);
  EXPECT_TRUE(seen.tail.ends_with("athe end"));
}

TEST(chat_stream, puts_a_completion_together_at_every_split_position) {
  for (size_t cut = 0; cut <= words.size(); ++cut) {
    chat_stream stream;
    ASSERT_TRUE(stream.feed(std::string_view{words}.substr(0, cut)));
    ASSERT_TRUE(stream.feed(std::string_view{words}.substr(cut)));
    auto answer = stream.finish();
    ASSERT_TRUE(answer) << "cut at " << cut << ": " << answer.error().error.message;
    ASSERT_EQ(full_text(*answer), "<think>\nhm\n</think>\na \u20ac");
    ASSERT_EQ(answer->finish_reason, "length");
    ASSERT_EQ(answer->model, "m");
    ASSERT_EQ(answer->token_ids, (std::vector<int32_t>{7, 8}));
    ASSERT_EQ(answer->prompt_token_ids, (std::vector<int32_t>{1, 2}));
    ASSERT_EQ(answer->logprobs.size(), 2u);
    ASSERT_FLOAT_EQ(answer->logprobs[0], -0.5f);
    ASSERT_TRUE(std::isnan(answer->logprobs[1]));
    ASSERT_EQ(answer->prompt_tokens, 2u);
    ASSERT_EQ(answer->completion_tokens, 3u);
  }
}

TEST(chat_stream, reads_content_in_parts_and_calls_of_tools) {
  auto x = read(
      "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}\n\n"
      "data: [DONE]\n\n");
  ASSERT_TRUE(x);
  EXPECT_EQ(full_text(*x), "a");
  EXPECT_EQ(x->calls.size(), 1u);
}

TEST(chat_stream, every_cut_before_the_reason_to_finish_is_a_failure) {
  auto reason = R"("finish_reason":"length"}]})";
  auto end = words.find(reason) + std::string{reason}.size() + 2;
  for (size_t size = 1; size <= words.size(); ++size) {
    auto answer = read(words.substr(0, size));
    ASSERT_EQ(answer.has_value(), size >= end) << "after " << size << " bytes";
    if (!answer) {
      ASSERT_FALSE(answer.error().from_server);
    } else {
      EXPECT_EQ(full_text(*answer), "<think>\nhm\n</think>\na \u20ac");
    }
  }
}

TEST(chat_stream, keeps_what_came_of_an_answer_that_breaks) {
  chat_stream stream;
  stream.feed("data: {\"choices\":[{\"delta\":{\"content\":\"abc\"}}]}\n\n");
  stream.feed("data: {\"choices\":[{\"delta\":{\"content\":\"d}}]}\n\n");
  auto x = stream.finish();
  ASSERT_FALSE(x);
  EXPECT_TRUE(x.error().of_completion);
  EXPECT_EQ(stream.partial().content, "abc");
}

TEST(chat_stream, a_call_of_a_tool_comes_in_pieces_and_is_kept) {
  auto call = [](const char* function) {
    return std::string{R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":)"} +
           function + "}]}}]}\n\n";
  };
  auto x = read(call(R"({"name":"run","arguments":""})") + call(R"({"arguments":"{\"a\":"})") +
                call(R"({"arguments":"1}"})") + "data: [DONE]\n\n");
  ASSERT_TRUE(x);
  EXPECT_EQ(full_text(*x), R"(run {"a":1})");
}

TEST(chat_stream, an_error_within_the_stream_ends_it) {
  chat_stream stream;
  EXPECT_TRUE(stream.feed("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"));
  EXPECT_FALSE(stream.feed("data: {\"error\":{\"message\":\"out of memory\",\"code\":503}}\n\n"));
  auto answer = stream.finish();
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().from_server);
  EXPECT_EQ(answer.error().error.message, "out of memory");
  EXPECT_EQ(answer.error().error.code, "503");
  EXPECT_EQ(stream.partial().content, "a");
}

TEST(chat_stream, an_error_event_of_another_type_is_one_too) {
  auto answer = read("event: error\ndata: {\"message\":\"no\"}\n\n");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().from_server);
}

TEST(chat_stream, tells_a_stream_from_a_plain_answer) {
  chat_stream plain;
  plain.feed(R"({"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]})");
  EXPECT_TRUE(plain.finish().has_value());
  EXPECT_FALSE(plain.is_stream());
  chat_stream events;
  events.feed(
      "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: "
      "[DONE]\n\n");
  EXPECT_TRUE(events.finish().has_value());
  EXPECT_TRUE(events.is_stream());
}

TEST(chat_stream, a_plain_answer_instead_of_a_stream_is_read) {
  auto answer = read(R"( {"choices":[{"message":{"content":"plain"},"finish_reason":"stop"}]})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->content, "plain");
}

TEST(chat_stream, garbage_is_a_failure_with_a_quote) {
  auto answer = read("<html>busy</html>\n\n");
  ASSERT_FALSE(answer);
  answer = read("data: <html>busy\x01</html>\n\n");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().error.message.find("<html>busy"), std::string::npos);
}

TEST(chat_stream, a_completion_above_the_limit_is_refused) {
  chat_stream stream{1000};
  auto event =
      "data: {\"choices\":[{\"delta\":{\"content\":\"" + std::string(400, 'x') + "\"}}]}\n\n";
  EXPECT_TRUE(stream.feed(event));
  EXPECT_TRUE(stream.feed(event));
  EXPECT_FALSE(stream.feed(event));
  EXPECT_FALSE(stream.finish());
}

TEST(chat_stream, nothing_at_all_is_a_failure) {
  EXPECT_FALSE(read(""));
}

} // namespace chat_stream_test
} // namespace kernelmill
