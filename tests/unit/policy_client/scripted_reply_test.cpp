#include <gtest/gtest.h>

#include "actors/policy_client/protocol/chat_stream.hpp"
#include "launch/server/scripted/scripted_reply.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace scripted_reply_test {

using nlohmann::json;

policy_script script() {
  auto x = parse_policy_script(R"({"model": "m", "replies": [
    {"text": "anything"},
    {"task": "a", "text": "a any"},
    {"task": "a", "member": 1, "turn": 0, "text": "a 1 0"},
    {"task": "a", "member": 1, "turn": 1, "text": "a 1 1"},
    {"member": 2, "text": "any 2"},
    {"task": "b", "turn": 2, "text": "b 2"}]})",
                               "s", "/");
  return *x;
}

std::string choice(const std::string& task, std::optional<uint32_t> member, uint32_t turn) {
  static const auto s = script();
  scripted_request r;
  r.task = task;
  r.member = member;
  r.turn = turn;
  const auto* reply = choose_reply(s, r);
  return reply == nullptr ? "none" : reply->text;
}

scripted_request request_of(const std::string& session, uint32_t turn) {
  scripted_request r;
  r.session = session;
  r.turn = turn;
  return r;
}

TEST(choose_reply, prefers_task_then_member_then_turn) {
  EXPECT_EQ(choice("a", 1, 0), "a 1 0");
  EXPECT_EQ(choice("a", 1, 1), "a 1 1");
  EXPECT_EQ(choice("a", 2, 0), "a any");
  EXPECT_EQ(choice("a", std::nullopt, 0), "a any");
  EXPECT_EQ(choice("c", 2, 0), "any 2");
  EXPECT_EQ(choice("c", 0, 0), "anything");
}

TEST(choose_reply, repeats_the_last_turn_and_never_looks_ahead) {
  EXPECT_EQ(choice("a", 1, 7), "a 1 1");
  EXPECT_EQ(choice("b", 0, 1), "anything");
  EXPECT_EQ(choice("b", 0, 2), "b 2");
  EXPECT_EQ(choice("b", 0, 9), "b 2");
}

TEST(read_chat_request, finds_task_member_and_turn) {
  auto x = read_chat_request(R"({"model":"m","max_tokens":5,"logprobs":true,"messages":[
    {"role":"system","content":"[task: no]"},{"role":"user","content":"[task: native/row_sum]\nGo."},
    {"role":"assistant","content":"x"},{"role":"user","content":"[task: other]"}]})",
                             "quick/start/g3.e1");
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ(x->task, "native/row_sum");
  EXPECT_EQ(x->member, 1u);
  EXPECT_EQ(x->turn, 1u);
  EXPECT_EQ(x->max_tokens, 5u);
  EXPECT_TRUE(x->logprobs);
}

TEST(read_chat_request, refuses_what_is_no_chat) {
  for (const auto* body :
       {"", "[]", "{}", R"({"messages":[]})", R"({"messages":[{"role":"user"}]})",
        R"({"messages":[{"role":"user","content":[1]}]})"})
    EXPECT_FALSE(read_chat_request(body, "")) << body;
}

TEST(fault_schedule, hits_the_same_turns_in_any_order_and_lets_the_next_attempt_pass) {
  std::vector<scripted_fault> faults(1);
  faults[0].every = 5;
  std::set<std::pair<std::string, uint32_t>> hit[2];
  for (int order : {0, 1}) {
    fault_schedule schedule{faults};
    for (int i = 0; i < 200; ++i) {
      auto n = order == 0 ? i : 199 - i;
      // The runs have other names; their episodes are the same.
      auto episode = "g" + std::to_string(n / 4) + ".e0";
      auto r = request_of((order == 0 ? "one/" : "two/") + episode, static_cast<uint32_t>(n % 4));
      if (schedule.next(r) == nullptr) continue;
      hit[order].emplace(episode, r.turn);
      EXPECT_EQ(schedule.next(r), nullptr);
    }
  }
  EXPECT_EQ(hit[0], hit[1]);
  EXPECT_GT(hit[0].size(), 15u);
  EXPECT_LT(hit[0].size(), 90u);
}

TEST(fault_schedule, counts_requests_without_a_session) {
  std::vector<scripted_fault> faults(1);
  faults[0].every = 3;
  fault_schedule schedule{faults};
  std::string hits;
  for (int i = 0; i < 9; ++i) hits += schedule.next(request_of("", 0)) != nullptr ? 'x' : '.';
  EXPECT_EQ(hits, "..x..x..x");
}

TEST(fault_schedule, ends_after_its_times_and_keeps_to_its_match) {
  std::vector<scripted_fault> faults(1);
  faults[0].times = 2;
  faults[0].match.turn = 1;
  fault_schedule schedule{faults};
  EXPECT_EQ(schedule.next(request_of("r/g0.e0", 0)), nullptr);
  EXPECT_NE(schedule.next(request_of("r/g0.e0", 1)), nullptr);
  EXPECT_NE(schedule.next(request_of("r/g0.e0", 1)), nullptr);
  EXPECT_EQ(schedule.next(request_of("r/g0.e0", 1)), nullptr);
}

TEST(synthetic_tokens, together_are_the_text) {
  for (std::string text : {"", " ", "a", " a  b\n", "one two\tthree\n\n four"}) {
    std::string joined;
    for (auto x : synthetic_tokens(text)) joined += x;
    EXPECT_EQ(joined, text);
  }
}

TEST(chat_answer, and_its_stream_say_the_same) {
  scripted_request r;
  r.model = "m";
  r.prompt = "a prompt of five words";
  r.logprobs = r.token_ids = r.include_usage = true;
  scripted_reply reply;
  for (int i = 0; i < 100; ++i) reply.text += " word" + std::to_string(i) + " \u20ac";
  auto whole = parse_chat_response(chat_answer(r, reply, "id", 0));
  chat_stream stream;
  for (const auto& event : chat_events(r, reply, "id", 0)) ASSERT_TRUE(stream.feed(event));
  auto streamed = stream.finish();
  ASSERT_TRUE(whole);
  ASSERT_TRUE(streamed);
  EXPECT_EQ(whole->content, reply.text);
  EXPECT_EQ(streamed->content, reply.text);
  EXPECT_EQ(whole->token_ids, streamed->token_ids);
  EXPECT_EQ(whole->logprobs, streamed->logprobs);
  EXPECT_EQ(whole->prompt_token_ids, streamed->prompt_token_ids);
  EXPECT_EQ(whole->prompt_tokens, 5u);
  EXPECT_EQ(streamed->completion_tokens, whole->completion_tokens);
  EXPECT_EQ(whole->token_ids.size(), whole->logprobs.size());
}

TEST(chat_answer, is_cut_at_max_tokens) {
  scripted_request r;
  r.max_tokens = 2;
  scripted_reply reply;
  reply.text = "one two three";
  auto x = parse_chat_response(chat_answer(r, reply, "id", 0));
  ASSERT_TRUE(x);
  EXPECT_EQ(x->content, "one two");
  EXPECT_EQ(x->finish_reason, "length");
}

} // namespace scripted_reply_test
} // namespace kernelmill
