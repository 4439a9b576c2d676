// Calls of tools over loopback: the real actor and libcurl against a scripted server of each kind,
// whole and streamed, and in token ids. The test plays the episode: it answers the calls.

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

#include "actors/policy_client/http_policy_client.hpp"
#include "actors/policy_client/protocol/token_thread.hpp"
#include "actors/policy_client/server_probe.hpp"
#include "launch/server/scripted/scripted_server.hpp"

namespace kernelmill {
namespace policy_tools_test {

using result_message = Message<wire::CompletionResult>;

const char* const replies = R"(
  {"turn": 0, "text": "I look.", "tool_calls": [{"name": "eval", "arguments": {"n": 1}},
                                                {"name": "bench", "arguments": {"k": "a b"}}]},
  {"turn": 1, "thought": "broken", "tool_calls": [{"name": "eval", "arguments": "{\"n\": "}]},
  {"turn": 2, "tool_calls": [{"name": "submit"}]},
  {"turn": 3, "text": "Done."})";

struct said {
  std::string text;
  std::vector<tool_call> calls;
};

struct policy_tools : testing::TestWithParam<const char*> {
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.max-threads", size_t{2});
    }
  };

  ~policy_tools() override { caf::anon_send_exit(client, caf::exit_reason::user_shutdown); }

  void start(const std::string& more = {}, const std::string& with = replies) {
    auto script = parse_policy_script(R"({"model":"m","kind":")" + std::string{GetParam()} +
                                          R"(","replies":[)" + with + "]" + more + "}",
                                      "test", "/");
    ASSERT_TRUE(script) << render(script.error());
    auto started = scripted_server::start(*script, "127.0.0.1", 0);
    ASSERT_TRUE(started);
    server = std::move(*started);
    config.base_url = server->base_url();
    config.model = "m";
    config.kind = *parse_server_kind(GetParam());
    client = system.spawn(http_policy_client, config);
  }

  static void add_message(wire::ChatMessage::Builder to, const char* role, const std::string& text,
                          const std::string& answers = {}) {
    to.setRole(role);
    to.setContent(text);
    to.setCallId(answers);
  }

  // The whole conversation so far, with a result for each call.
  Message<wire::CompletionRequest> request() const {
    return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
      x.setSession("run/g0.e0");
      x.setTurn(static_cast<uint32_t>(turns.size()));
      x.setDeadlineMs(30000);
      x.initSampling().setMaxTokens(max_tokens);
      x.setThreadIds(kj::arrayPtr(thread.ids.data(), thread.ids.size()));
      x.setThreadSampled(thread.sampled);
      unsigned count = 1;
      for (const auto& turn : turns) count += 1 + static_cast<unsigned>(turn.calls.size());
      auto list = x.initMessages(count);
      add_message(list[0], "user", "[task: t/a]\nplease");
      unsigned at = 1;
      for (const auto& turn : turns) {
        auto answer = list[at++];
        add_message(answer, "assistant", turn.text);
        auto calls = answer.initCalls(static_cast<unsigned>(turn.calls.size()));
        for (unsigned i = 0; i < calls.size(); ++i) {
          calls[i].setId(turn.calls[i].id);
          calls[i].setName(turn.calls[i].name);
          calls[i].setArguments(turn.calls[i].arguments);
        }
        for (const auto& call : turn.calls)
          add_message(list[at++], "tool", "it ran: " + call.name, call.id);
      }
      if (!tools) return;
      auto offered = x.initTools(3);
      for (unsigned i = 0; i < 3; ++i) {
        const char* const names[] = {"eval", "bench", "submit"};
        offered[i].setName(names[i]);
        offered[i].setParameters(R"({"type":"object","properties":{"n":{},"k":{}}})");
      }
      x.setToolChoice("auto");
    });
  }

  said turn() {
    auto asked = request();
    self->request(client, std::chrono::seconds{60}, atom::complete_v, envelope{}, asked)
        .receive([&](const result_message& x) { last = x; },
                 [&](caf::error& e) { ADD_FAILURE() << system.render(e); });
    auto x = last.open();
    said result{x->getText().cStr(), {}};
    for (auto call : x->getCalls())
      result.calls.push_back(
          {call.getId().cStr(), call.getName().cStr(), call.getArguments().cStr()});
    auto prompt = values(x->getPromptTokenIds()), sampled = values(x->getTokenIds());
    audit = audit_tokens(turns.empty(), thread.ids, prompt, sampled);
    thread = keep_thread(prompt, sampled);
    turns.push_back(result);
    return result;
  }

  static std::vector<int32_t> values(capnp::List<int32_t>::Reader xs) {
    std::vector<int32_t> result;
    for (auto x : xs) result.push_back(x);
    return result;
  }

  void expect_good() {
    auto x = last.open();
    EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE)
        << x->getFault().getMessage().cStr();
  }

  // The four turns of `replies`; broken arguments come back as they were written, or, where no
  // server parser ran, in the text.
  void expect_turns(bool by_ids) {
    auto x = turn();
    expect_good();
    EXPECT_EQ(x.text, "I look.");
    ASSERT_EQ(x.calls.size(), 2u);
    EXPECT_EQ(x.calls[0].name + x.calls[0].arguments, R"(eval{"n":1})");
    EXPECT_EQ(x.calls[1].name + x.calls[1].arguments, R"(bench{"k":"a b"})");
    EXPECT_NE(x.calls[0].id, x.calls[1].id);
    x = turn();
    expect_good();
    ASSERT_EQ(x.calls.size(), by_ids ? 0u : 1u);
    if (by_ids)
      EXPECT_NE(x.text.find("<tool_call>"), std::string::npos);
    else
      EXPECT_EQ(x.calls[0].arguments, "{\"n\": ");
    x = turn();
    expect_good();
    EXPECT_EQ(x.text, "");
    ASSERT_EQ(x.calls.size(), 1u);
    EXPECT_EQ(x.calls[0].name + x.calls[0].arguments, "submit{}");
    x = turn();
    expect_good();
    EXPECT_EQ(x.text, "Done.");
    EXPECT_TRUE(x.calls.empty());
    EXPECT_EQ(server->faults(), 0u);
  }

  configuration cfg;
  caf::actor_system system{cfg};
  caf::scoped_actor self{system};
  std::unique_ptr<scripted_server> server;
  policy_config config;
  policy_client_actor client;
  bool tools = true;
  uint32_t max_tokens = 1000;
  token_thread thread;
  token_audit audit;
  std::vector<said> turns;
  result_message last;
};

struct policy_tools_by_ids : policy_tools {};

INSTANTIATE_TEST_SUITE_P(kinds, policy_tools,
                         testing::Values("openai", "vllm", "sglang", "llamacpp"),
                         [](const auto& x) { return std::string{x.param}; });
INSTANTIATE_TEST_SUITE_P(kinds, policy_tools_by_ids, testing::Values("vllm", "sglang", "llamacpp"),
                         [](const auto& x) { return std::string{x.param}; });

TEST_P(policy_tools, conversations_go_on_across_results) {
  start();
  expect_turns(false);
}

TEST_P(policy_tools, so_they_do_streamed) {
  config.stream = true;
  start();
  expect_turns(false);
}

TEST_P(policy_tools, without_tools_the_calls_are_blocks_of_the_text) {
  tools = false;
  start();
  auto x = turn();
  expect_good();
  EXPECT_TRUE(x.calls.empty());
  EXPECT_EQ(x.text.find("I look.\n<tool_call>\n{\"name\": \"eval\""), 0u) << x.text;
}

TEST_P(policy_tools, more_calls_than_are_taken_end_the_turn_as_the_policys) {
  std::string calls = R"({"name":"eval"})";
  for (int i = 1; i < 1100; ++i) calls += R"(,{"name":"eval"})";
  max_tokens = 100000; // else the answer is cut, and a cut one has no calls
  start({}, R"({"tool_calls":[)" + calls + "]}");
  turn();
  auto x = last.open();
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::POLICY);
  EXPECT_STREQ(x->getFault().getCategory().cStr(), "too_many_calls");
  EXPECT_EQ(server->requests(), 1u);
}

TEST_P(policy_tools, a_server_without_a_parser_ends_the_run_or_leaves_text) {
  start(R"(,"tools":false)");
  auto x = turn();
  auto answer = last.open();
  if (config.kind == server_kind::sglang) {
    EXPECT_EQ(x.calls.size(), 2u) << "read out of the text";
    return;
  }
  EXPECT_EQ(answer->getFault().getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_NE(std::string{answer->getFault().getHint().cStr()}.find("tools.calls=text"),
            std::string::npos);
}

TEST_P(policy_tools_by_ids, prompts_go_on_in_ids_across_results) {
  for (const char* more : {"", R"(,"drift":true,"strip_thoughts":true)"}) {
    SCOPED_TRACE(more);
    turns.clear();
    thread = {};
    config.exact_tokens = true;
    start(more);
    for (int i = 0; i < 4; ++i) {
      auto kept = static_cast<uint32_t>(thread.ids.size());
      turn();
      expect_good();
      EXPECT_EQ(audit.state, wire::TokenState::EXACT) << "turn " << i;
      EXPECT_EQ(audit.position, kept);
      EXPECT_STREQ(last.open()->getRoute().cStr(), "tokens");
    }
    turns.clear();
    thread = {};
    expect_turns(true);
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  }
}

TEST_P(policy_tools, a_probe_says_in_which_form_tools_are_called) {
  auto tools_of = [&] {
    policy_config asked;
    asked.base_url = server->base_url();
    auto report = probe_server(asked, std::nullopt, 20000);
    EXPECT_TRUE(report) << render(report.error());
    for (const auto& x : report ? report->capabilities : std::vector<server_capability>{})
      if (x.name == "tools") return x;
    return server_capability{};
  };
  start();
  auto x = tools_of();
  EXPECT_EQ(x.has, true);
  EXPECT_EQ(x.seen, "native");
  start(R"(,"tools":false)");
  x = tools_of();
  EXPECT_EQ(x.has, false);
  EXPECT_TRUE(x.seen.starts_with("text (the server ")) << x.seen;
  start({}, R"({"text":"I do not."})");
  x = tools_of();
  EXPECT_FALSE(x.has.has_value()) << x.seen;
  EXPECT_NE(x.without.find("tools.calls=native needs"), std::string::npos);
}

} // namespace policy_tools_test
} // namespace kernelmill
