// Token-in/token-out over loopback: the real actor and libcurl against a scripted server that has
// the routes of vLLM or SGLang. The test plays the episode: it keeps the thread and audits it.

#include <mutex>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

#include "actors/policy_client/http_policy_client.hpp"
#include "actors/policy_client/server_probe.hpp"
#include "launch/server/scripted/scripted_server.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace policy_tokens_test {

using result_message = Message<wire::CompletionResult>;

const char* const thoughtful = R"(<think>\nlet me see\n</think>\nthe answer number one)";

struct policy_tokens : testing::TestWithParam<const char*> {
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.max-threads", size_t{2});
    }
  };

  ~policy_tokens() override { caf::anon_send_exit(client, caf::exit_reason::user_shutdown); }

  void start(const std::string& more, bool exact = true) {
    auto script =
        parse_policy_script(R"({"model":"m","replies":[{"text":")" + std::string{thoughtful} +
                                R"("}],"kind":")" + GetParam() + '"' + more + "}",
                            "test", "/");
    ASSERT_TRUE(script) << render(script.error());
    auto started = scripted_server::start(*script, "127.0.0.1", 0);
    ASSERT_TRUE(started);
    server = std::move(*started);
    policy_config config;
    config.base_url = server->base_url();
    config.model = "m";
    config.kind = *parse_server_kind(GetParam());
    config.exact_tokens = exact;
    client = system.spawn(http_policy_client, config);
  }

  // One turn of an episode; what it says and what it was audited as.
  token_audit turn() {
    auto request = build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
      x.setSession("run/g0.e0");
      x.setTurn(static_cast<uint32_t>(answers.size()));
      x.setDeadlineMs(20000);
      x.initSampling().setMaxTokens(max_tokens);
      x.setThreadIds(kj::arrayPtr(thread.ids.data(), thread.ids.size()));
      x.setThreadSampled(thread.sampled);
      auto list = x.initMessages(static_cast<unsigned>(1 + 2 * answers.size()));
      list[0].setRole("user");
      list[0].setContent("[task: t/a]\nplease");
      for (unsigned i = 0; i < answers.size(); ++i) {
        list[2 * i + 1].setRole("assistant");
        list[2 * i + 1].setContent(answers[i]);
        list[2 * i + 2].setRole("user");
        list[2 * i + 2].setContent("that was slow; again");
      }
    });
    self->request(client, std::chrono::seconds{60}, atom::complete_v, envelope{}, request)
        .receive([&](const result_message& x) { last = x; },
                 [&](caf::error& e) { ADD_FAILURE() << system.render(e); });
    auto x = last.open();
    EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE)
        << x->getFault().getMessage().cStr();
    auto prompt = values(x->getPromptTokenIds()), sampled = values(x->getTokenIds());
    auto result = audit_tokens(answers.empty(), thread.ids, prompt, sampled);
    thread = keep_thread(prompt, sampled);
    answers.emplace_back(x->getText().cStr());
    return result;
  }

  static std::vector<int32_t> values(capnp::List<int32_t>::Reader xs) {
    std::vector<int32_t> result;
    for (auto x : xs) result.push_back(x);
    return result;
  }

  std::vector<std::pair<std::string, std::pair<uint32_t, uint32_t>>> versions() {
    std::vector<std::pair<std::string, std::pair<uint32_t, uint32_t>>> result;
    auto view = last.open();
    for (auto x : view->getWeightVersions())
      result.push_back({x.getVersion().cStr(), {x.getStart(), x.getEnd()}});
    return result;
  }

  void expect_exact_turns(int count) {
    for (int i = 0; i < count; ++i) {
      auto kept = static_cast<uint32_t>(thread.ids.size());
      auto audit = turn();
      EXPECT_EQ(audit.state, wire::TokenState::EXACT) << "turn " << i;
      EXPECT_EQ(audit.position, kept);
      EXPECT_STREQ(last.open()->getRoute().cStr(), "tokens");
      EXPECT_EQ(last.open()->getLogprobs().size(), last.open()->getTokenIds().size());
    }
  }

  configuration cfg;
  caf::actor_system system{cfg};
  caf::scoped_actor self{system};
  std::unique_ptr<scripted_server> server;
  policy_client_actor client;
  token_thread thread;
  std::vector<std::string> answers;
  result_message last;
  uint32_t max_tokens = 100;
};

// What llama.cpp does not have: ids of prompts in a chat, messages at /tokenize, versions.
struct engine_tokens : policy_tokens {};

INSTANTIATE_TEST_SUITE_P(kinds, policy_tokens, testing::Values("vllm", "sglang", "llamacpp"),
                         [](const auto& x) { return std::string{x.param}; });
INSTANTIATE_TEST_SUITE_P(kinds, engine_tokens, testing::Values("vllm", "sglang"),
                         [](const auto& x) { return std::string{x.param}; });

TEST_P(policy_tokens, turns_go_on_from_what_was_sampled) {
  start("");
  expect_exact_turns(3);
  EXPECT_EQ(answers[0], "<think>\nlet me see\n</think>\nthe answer number one");
}

TEST_P(policy_tokens, they_do_so_where_rendering_anew_would_depart) {
  start(R"(,"drift":true,"strip_thoughts":true)");
  expect_exact_turns(4);
}

TEST_P(policy_tokens, they_do_so_after_an_answer_that_was_cut_off) {
  max_tokens = 5;
  start(R"(,"drift":true)");
  expect_exact_turns(3);
  EXPECT_STREQ(last.open()->getFinishReason().cStr(), "length");
}

TEST_P(engine_tokens, by_chat_the_same_server_leads_to_branches_that_are_seen) {
  start(R"(,"drift":true,"strip_thoughts":true)", false);
  EXPECT_EQ(turn().state, wire::TokenState::EXACT);
  auto prompt = thread.ids.size() - thread.sampled;
  auto second = turn();
  EXPECT_EQ(second.state, wire::TokenState::BRANCH);
  EXPECT_GE(second.position, prompt) << "the prompt itself was the same";
  EXPECT_LT(second.position, second.kept);
}

TEST_P(engine_tokens, without_a_route_that_tokenizes_messages_a_chat_of_one_token_renders) {
  start(R"(,"renders":false,"drift":true,"strip_thoughts":true)");
  expect_exact_turns(3);
}

TEST_P(policy_tokens, faults_on_the_way_are_survived_and_change_nothing) {
  for (auto fault : {R"({"status":503,"times":1})", R"({"status":429,"times":1})",
                     R"({"kind":"abort","times":1})", R"({"kind":"truncate","times":1})",
                     R"({"kind":"garbage","times":1})"}) {
    SCOPED_TRACE(fault);
    thread = {};
    answers.clear();
    start(R"(,"drift":true,"faults":[)" + std::string{fault} + "]");
    expect_exact_turns(2);
    EXPECT_EQ(server->faults(), 1u);
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  }
}

TEST_P(engine_tokens, versions_of_the_weights_come_with_their_tokens) {
  start(R"(,"versions":[{"version":"step-1"},{"version":"step-2","from_request":2}])");
  turn();
  auto tokens = last.open()->getTokenIds().size();
  using spans = std::vector<std::pair<std::string, std::pair<uint32_t, uint32_t>>>;
  EXPECT_EQ(versions(), (spans{{"step-1", {0, tokens}}}));
  turn();
  EXPECT_EQ(versions(), (spans{{"step-2", {0, tokens}}}));
}

TEST_P(engine_tokens, a_probe_says_that_nothing_is_lost) {
  start(R"(,"versions":[{"version":"step-1"}])");
  policy_config config;
  config.base_url = server->base_url();
  auto report = probe_server(config, std::nullopt, 20000);
  ASSERT_TRUE(report) << render(report.error());
  EXPECT_EQ(to_string(report->kind), GetParam());
  EXPECT_EQ(report->model, "m");
  EXPECT_EQ(report->weight_version, "step-1");
  for (const auto& x : report->capabilities) {
    if (x.name == "tools") continue; // this model calls none
    auto expected = x.name != "abort" || report->kind == server_kind::sglang;
    EXPECT_EQ(x.has.value_or(false), expected) << x.name << ": " << x.seen;
    EXPECT_FALSE(x.without.empty());
  }
}

} // namespace policy_tokens_test
} // namespace kernelmill
