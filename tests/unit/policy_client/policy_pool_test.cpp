// The pool on CAF's deterministic scheduler and on virtual time. Its members are scripted: each
// answers, fails, keeps silent or ends as the test says.

#include <functional>
#include <map>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

#include "actors/caf_error.hpp"
#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "messages/fault.hpp"

namespace kernelmill {
namespace policy_pool_test {

using namespace std::chrono_literals;
using result_message = Message<wire::CompletionResult>;

/// What a member does, and what was asked of it. Shared with the test.
struct member_script {
  policy_config config;
  std::string state = "closed";               ///< as STATUS says it
  error fault{fault_class::none, {}, {}, {}}; ///< answered to everything when it is one
  bool silent = false;                        ///< keeps requests until the test answers
  std::string own_version;                    ///< of the weights, named by the server itself
  std::vector<std::string> sessions;
  std::vector<uint32_t> deadlines;
  std::vector<caf::typed_response_promise<result_message>> kept;
  int given_up = 0;
  policy_client_actor handle;

  result_message answer() const {
    if (fault.cls != fault_class::none) return failed_result(fault, "id", 1, 0);
    completion_answer x;
    x.content = config.base_url;
    x.finish_reason = "stop";
    x.completion_tokens = 7;
    if (!own_version.empty()) x.weight_versions = {{own_version, 0, 7}};
    return completed_result(x, "id-" + config.request_salt, 1, 0.1);
  }
};

policy_client_actor::behavior_type scripted_member(policy_client_actor::pointer self,
                                                   std::shared_ptr<member_script> script) {
  self->set_down_handler([script](caf::down_msg&) { ++script->given_up; });
  return {
      [script](atom::status) {
        // A promise is kept from within its actor alone.
        if (!script->silent)
          for (auto& x : std::exchange(script->kept, {})) x.deliver(script->answer());
        return make_snapshot("m", script->state, "as the test says", {});
      },
      [self, script](atom::complete, const envelope&,
                     const Message<wire::CompletionRequest>& request) {
        auto view = request.open();
        script->sessions.emplace_back(view->getSession().cStr());
        script->deadlines.push_back(view->getDeadlineMs());
        if (script->silent) self->monitor(self->current_sender());
        auto promise = self->make_response_promise<result_message>();
        if (script->silent)
          script->kept.push_back(promise);
        else
          promise.deliver(script->answer());
        return promise;
      },
  };
}

const error broken{fault_class::infrastructure, "policy_unavailable", "it is broken", {}};

struct policy_pool_simulation : testing::Test {
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.policy", caf::atom("testing"));
    }
  };

  policy_pool_simulation() {
    scheduler.clock().current_time += 1h;
    pool = system.spawn(policy_pool, [this](policy_config config) {
      auto& script = members[config.base_url];
      if (!script) script = std::make_shared<member_script>();
      script->config = std::move(config);
      script->handle = system.spawn(scripted_member, script);
      return script->handle;
    });
    run();
  }

  ~policy_pool_simulation() override {
    for (auto& [url, x] : members) {
      x->kept.clear();
      caf::anon_send_exit(x->handle, caf::exit_reason::kill);
      x->handle = nullptr;
    }
    for (auto& x : askers) caf::anon_send_exit(x, caf::exit_reason::kill);
    caf::anon_send_exit(pool, caf::exit_reason::user_shutdown);
    run();
  }

  void run() {
    while (scheduler.try_run_once()) {
    }
  }

  void advance(std::chrono::milliseconds total) {
    for (auto t = 0ms; t < total; t += 50ms) {
      scheduler.clock().advance_time(50ms);
      run();
    }
  }

  static std::string url_of(const std::string& name) { return "http://" + name + "/v1"; }
  member_script& member(const std::string& name) {
    auto& x = members[url_of(name)];
    if (!x) x = std::make_shared<member_script>();
    return *x;
  }

  // Lets a silent member answer what it has kept.
  void answer_now(const std::string& name) {
    member(name).silent = false;
    caf::anon_send(member(name).handle, atom::status_v);
    run();
  }

  template <class... Ts>
  std::string control(Ts&&... words) {
    caf::scoped_actor self{system, true};
    auto handle = self->request(pool, caf::infinite, std::forward<Ts>(words)...);
    run();
    std::string category;
    handle.receive([] {}, [&](caf::error& why) { category = from_caf(why).category; });
    return category;
  }

  std::string attach(const std::string& name, const std::string& kind = "openai",
                     const std::string& tokens = "") {
    return control(atom::attach_v, build<wire::PolicyServer>([&](wire::PolicyServer::Builder x) {
                     x.setName(name);
                     x.setTokens(tokens);
                     x.setUrl(url_of(name));
                     x.setKind(kind);
                     x.setModel("m");
                   }));
  }
  std::string detach(const std::string& name, uint32_t patience_ms) {
    return control(atom::detach_v, name, patience_ms);
  }
  std::string weights(const std::string& version, const std::string& name = {}) {
    return control(atom::weights_v, name, version);
  }

  // Asks from an actor of its own, which keeps the answer.
  caf::actor ask(uint32_t number, const std::string& session, uint32_t deadline_ms = 60'000,
                 bool exact = false) {
    auto request = build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
      x.setSession(session);
      x.setExactTokens(exact);
      x.setDeadlineMs(deadline_ms);
      x.initThreadIds(2).set(1, 42);
    });
    auto asker = system.spawn([=, this](caf::event_based_actor* self) {
      self->request(pool, 86400s, atom::complete_v, envelope{}, request)
          .then(
              [=, this](const result_message& x) {
                answers[number] = x;
                order.push_back(number);
              },
              [=, this](caf::error&) { order.push_back(0); });
    });
    askers.push_back(asker);
    run();
    return asker;
  }

  std::string text(uint32_t number) {
    auto i = answers.find(number);
    return i == answers.end() ? "unanswered" : i->second.open()->getText().cStr();
  }
  std::string category(uint32_t number) {
    auto i = answers.find(number);
    return i == answers.end() ? "unanswered" : i->second.open()->getFault().getCategory().cStr();
  }
  std::string versions(uint32_t number) {
    std::string result;
    auto view = answers[number].open();
    for (auto x : view->getWeightVersions())
      result += std::string{x.getVersion().cStr()} + "[" + std::to_string(x.getStart()) + "," +
                std::to_string(x.getEnd()) + ")";
    return result;
  }

  // The state of a server, "" when it is not listed, with a number of its own when one is named.
  std::string server(const std::string& name, const char* number = nullptr) {
    caf::scoped_actor self{system, true};
    auto handle = self->request(pool, caf::infinite, atom::status_v);
    run();
    std::string result;
    handle.receive(
        [&](const Message<wire::Snapshot>& x) {
          auto view = x.open();
          for (auto child : view->getChildren()) {
            if (child.getId() != name.c_str()) continue;
            result = child.getState().cStr();
            if (number == nullptr) continue;
            for (auto q : child.getNumbers())
              if (q.getName() == number) result = std::to_string(static_cast<int>(q.getValue()));
          }
        },
        [](caf::error&) { FAIL(); });
    return result;
  }

  // What STATUS says of a server's weights.
  std::string weights_of(const std::string& name) {
    caf::scoped_actor self{system, true};
    auto handle = self->request(pool, caf::infinite, atom::status_v);
    run();
    std::string result;
    handle.receive(
        [&](const Message<wire::Snapshot>& x) {
          auto view = x.open();
          for (auto child : view->getChildren()) {
            std::string detail = child.getDetail().cStr();
            if (auto at = detail.find("weights ");
                child.getId() == name.c_str() && at != detail.npos)
              result = detail.substr(at + 8);
          }
        },
        [](caf::error&) { FAIL(); });
    return result;
  }

  // The two names in the order in which a session would take them.
  std::pair<std::string, std::string> in_order_of(const std::string& session) {
    ask(9999, session);
    auto first = text(9999) == url_of("a") ? "a" : "b";
    for (auto name : {"a", "b"}) member(name).sessions.clear(), member(name).deadlines.clear();
    order.clear();
    return {first, std::string{first} == "a" ? "b" : "a"};
  }

  configuration cfg;
  caf::actor_system system{cfg};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::map<std::string, std::shared_ptr<member_script>> members;
  policy_pool_actor pool;
  std::vector<caf::actor> askers;
  std::map<uint32_t, result_message> answers;
  std::vector<uint32_t> order;
};

TEST_F(policy_pool_simulation, exact_tokens_are_asked_of_servers_that_take_them) {
  ASSERT_EQ(attach("a"), "");
  ASSERT_EQ(attach("b", "vllm", "chat"), "");
  ASSERT_EQ(attach("d", "sglang"), "");
  ASSERT_EQ(attach("e", "openai", "exact"), "invalid_value");
  std::set<std::string> chat;
  for (uint32_t i = 0; i < 64; ++i) {
    ask(i, "s" + std::to_string(i), 60'000, true);
    EXPECT_EQ(text(i), url_of("d"));
    ask(1000 + i, "s" + std::to_string(i));
    chat.insert(text(1000 + i));
  }
  EXPECT_EQ(chat.size(), 3u) << "others may go anywhere";
}

TEST_F(policy_pool_simulation, exact_tokens_wait_for_a_server_that_takes_them) {
  ASSERT_EQ(attach("a"), "");
  ask(1, "s", 60'000, true);
  EXPECT_EQ(text(1), "unanswered");
  ASSERT_EQ(attach("b", "vllm"), "");
  EXPECT_EQ(text(1), url_of("b"));
  ASSERT_EQ(detach("b", 0), "");
  ask(2, "s", 1000, true);
  advance(1500ms);
  ASSERT_EQ(category(2), "policy_unavailable");
  std::string why = answers[2].open()->getFault().getMessage().cStr();
  EXPECT_NE(why.find("no attached policy server takes token ids"), why.npos) << why;
}

TEST_F(policy_pool_simulation, a_conversation_stays_with_its_server) {
  for (auto name : {"a", "b", "c"}) ASSERT_EQ(attach(name), "");
  std::map<std::string, std::set<std::string>> used;
  for (uint32_t turn = 0; turn < 4; ++turn)
    for (uint32_t i = 0; i < 60; ++i) {
      auto session = "run/g" + std::to_string(i) + ".e0";
      ask(turn * 100 + i, session);
      used[session].insert(text(turn * 100 + i));
    }
  std::set<std::string> all;
  for (auto& [session, servers] : used) {
    EXPECT_EQ(servers.size(), 1u) << session;
    all.insert(servers.begin(), servers.end());
  }
  EXPECT_EQ(all.size(), 3u);
}

TEST_F(policy_pool_simulation, a_new_server_takes_only_its_share) {
  for (auto name : {"a", "b", "c"}) attach(name);
  std::map<uint32_t, std::string> before;
  for (uint32_t i = 0; i < 60; ++i) ask(i, "s" + std::to_string(i)), before[i] = text(i);
  attach("d");
  int moved = 0;
  for (uint32_t i = 0; i < 60; ++i) {
    ask(i, "s" + std::to_string(i));
    if (text(i) == before[i]) continue;
    ++moved;
    EXPECT_EQ(text(i), url_of("d"));
  }
  EXPECT_GT(moved, 3);
  EXPECT_LT(moved, 30);
}

TEST_F(policy_pool_simulation, a_fault_of_the_infrastructure_goes_to_the_next_server) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).fault = broken;
  ask(1, "s");
  EXPECT_EQ(text(1), url_of(second));
  EXPECT_EQ(answers[1].open()->getAttempts(), 2u);
  EXPECT_EQ(server(first), "resting");
  EXPECT_EQ(server(first, "failed_over"), "1");
  ask(2, "s");
  EXPECT_EQ(text(2), url_of(second));
  EXPECT_EQ(member(first).sessions.size(), 1u) << "a server that fails is left alone";
  member(first).fault.cls = fault_class::none;
  advance(3s);
  ask(3, "s");
  EXPECT_EQ(text(3), url_of(first)) << "and tried again after a while";
  EXPECT_EQ(server(first), "serving");
}

TEST_F(policy_pool_simulation, the_fault_comes_through_when_every_server_has_it) {
  attach("a");
  attach("b");
  member("a").fault = member("b").fault = broken;
  ask(1, "s");
  EXPECT_EQ(category(1), "policy_unavailable");
  EXPECT_EQ(member("a").sessions.size() + member("b").sessions.size(), 2u);
}

TEST_F(policy_pool_simulation, a_deadline_that_cuts_the_last_attempt_short_hides_no_cause) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).fault = broken;
  member(second).fault = {fault_class::infrastructure, "policy_timeout", "within 0.0 s", {}};
  ask(1, "s");
  EXPECT_EQ(category(1), "policy_unavailable");
  std::string said = answers[1].open()->getFault().getMessage();
  EXPECT_NE(said.find("2 attempts at the attached servers"), said.npos) << said;
  EXPECT_NE(said.find("it is broken"), said.npos) << said;
}

TEST_F(policy_pool_simulation, what_other_servers_took_of_the_time_is_not_charged_to_the_policy) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  error overdue{fault_class::policy, "answer_overdue", "within 0.1 s", {}};
  member(first).silent = true;
  member(first).fault = broken;
  member(second).fault = overdue;
  ask(1, "s", 5000);
  advance(3s);
  answer_now(first);
  EXPECT_EQ(category(1), "policy_unavailable");
  member(second).fault.cls = fault_class::none;
  member(first).fault = overdue;
  advance(3s);
  ask(2, "s", 5000);
  EXPECT_EQ(category(2), "answer_overdue") << "it had all of the time";
}

TEST_F(policy_pool_simulation, one_that_waited_for_a_server_is_not_charged_to_the_policy) {
  ask(1, "s", 5000);
  advance(3s);
  member("a").fault = {fault_class::policy, "answer_overdue", "within 2.0 s", {}};
  attach("a");
  EXPECT_EQ(category(1), "policy_timeout");
}

TEST_F(policy_pool_simulation, a_refused_key_of_one_server_is_not_the_fault_of_one_that_is_late) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).fault = {fault_class::configuration, "policy_auth", "wrong key", {}};
  member(second).fault = {fault_class::infrastructure, "policy_timeout", "within 0.0 s", {}};
  ask(1, "s");
  EXPECT_EQ(category(1), "policy_timeout");
}

TEST_F(policy_pool_simulation, a_refused_key_of_one_server_ends_no_run) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).fault = {fault_class::configuration, "policy_auth", "wrong key", {}};
  ask(1, "s");
  EXPECT_EQ(text(1), url_of(second));
  detach(second, 0);
  ask(2, "s");
  EXPECT_EQ(category(2), "policy_auth");
}

TEST_F(policy_pool_simulation, two_servers_never_get_the_same_request_id) {
  attach("a");
  attach("b");
  EXPECT_NE(member("a").config.request_salt, member("b").config.request_salt);
  auto before = member("a").config.request_salt;
  detach("a", 0);
  attach("a");
  EXPECT_NE(member("a").config.request_salt, before);
  EXPECT_EQ(member("a").config.first_contact_ms, 0u);
}

TEST_F(policy_pool_simulation,
       an_open_circuit_moves_what_is_in_flight_with_what_is_left_of_its_deadline) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).silent = true;
  ask(1, "s", 60'000);
  advance(10s);
  EXPECT_EQ(text(1), "unanswered");
  member(first).state = "open";
  advance(1s);
  EXPECT_EQ(text(1), url_of(second));
  EXPECT_EQ(member(first).given_up, 1) << "the first one is told to stop generating";
  ASSERT_EQ(member(second).deadlines.size(), 1u);
  EXPECT_LT(member(second).deadlines[0], 50'100u);
  EXPECT_GT(member(second).deadlines[0], 48'000u);
}

TEST_F(policy_pool_simulation, the_only_server_keeps_its_requests_whatever_its_circuit_says) {
  attach("a");
  member("a").silent = true;
  ask(1, "s");
  member("a").state = "open";
  advance(5s);
  EXPECT_EQ(member("a").given_up, 0);
  attach("b");
  advance(1s);
  EXPECT_EQ(text(1), url_of("b")) << "until there is another one";
}

TEST_F(policy_pool_simulation, requests_wait_in_order_for_a_first_server) {
  for (uint32_t i = 1; i <= 5; ++i) ask(i, "s" + std::to_string(i));
  advance(10s);
  EXPECT_TRUE(answers.empty());
  attach("a");
  EXPECT_EQ(member("a").sessions, (std::vector<std::string>{"s1", "s2", "s3", "s4", "s5"}));
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 2, 3, 4, 5}));
  EXPECT_LE(member("a").deadlines.front(), 50'000u);
}

TEST_F(policy_pool_simulation,
       a_request_that_waits_in_vain_hears_at_the_deadline_that_there_was_no_server) {
  ask(1, "s", 5000);
  advance(4800ms);
  EXPECT_EQ(category(1), "unanswered");
  advance(600ms);
  EXPECT_EQ(category(1), "policy_unavailable");
  EXPECT_EQ(fault_of(answers[1].open()->getFault()).cls, fault_class::infrastructure);
}

TEST_F(policy_pool_simulation, a_detached_server_drains) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).silent = true;
  ask(1, "s");
  EXPECT_EQ(detach(first, 30'000), "");
  EXPECT_EQ(server(first), "draining");
  ask(2, "s");
  EXPECT_EQ(text(2), url_of(second)) << "nothing new";
  EXPECT_EQ(attach(first), "policy_attached");
  advance(5s);
  answer_now(first);
  EXPECT_EQ(text(1), url_of(first)) << "what was in flight has finished";
  EXPECT_EQ(server(first), "") << "and the server is gone";
  EXPECT_EQ(attach(first), "");
}

TEST_F(policy_pool_simulation, what_is_not_drained_in_time_fails_over) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).silent = true;
  ask(1, "s");
  detach(first, 2000);
  advance(3s);
  EXPECT_EQ(text(1), url_of(second));
  EXPECT_EQ(server(first), "");
}

TEST_F(policy_pool_simulation, the_last_server_detached_leaves_requests_waiting_for_the_next) {
  attach("a");
  member("a").silent = true;
  ask(1, "s");
  detach("a", 0);
  advance(1s);
  EXPECT_EQ(text(1), "unanswered");
  attach("b");
  EXPECT_EQ(text(1), url_of("b"));
}

TEST_F(policy_pool_simulation, requests_survive_the_end_of_a_client) {
  attach("a");
  attach("b");
  auto [first, second] = in_order_of("s");
  member(first).silent = true;
  ask(1, "s");
  caf::anon_send_exit(member(first).handle, caf::exit_reason::kill);
  run();
  EXPECT_EQ(text(1), url_of(second));
  EXPECT_EQ(server(first), "lost");
  EXPECT_EQ(attach(first), "") << "it can be attached again";
  EXPECT_EQ(server(first), "serving");
}

TEST_F(policy_pool_simulation, an_asker_that_ends_gives_its_request_up) {
  attach("a");
  member("a").silent = true;
  auto asker = ask(1, "s");
  caf::anon_send_exit(asker, caf::exit_reason::kill);
  run();
  EXPECT_EQ(member("a").given_up, 1);
  EXPECT_EQ(server("a", "in_flight"), "0");
}

TEST_F(policy_pool_simulation, declared_versions_are_recorded_with_each_completion) {
  attach("a");
  attach("b");
  ask(1, "s");
  EXPECT_EQ(versions(1), "");
  EXPECT_EQ(weights("step-1"), "");
  ask(2, "s");
  EXPECT_EQ(versions(2), "step-1[0,7)");
  auto at = member("a").sessions.empty() ? "b" : "a";
  EXPECT_EQ(weights("step-2", at), "");
  ask(3, "s");
  EXPECT_EQ(versions(3), "step-2[0,7)");
  EXPECT_EQ(server(at, "weight_changes"), "2");
  EXPECT_EQ(server(std::string{at} == "a" ? "b" : "a", "weight_changes"), "1");
  attach("c");
  EXPECT_EQ(weights_of("c"), "step-1") << "what was declared for all is also said of new ones";
  EXPECT_EQ(weights("two words"), "invalid_value");
  EXPECT_EQ(weights("a..b"), "invalid_value");
  EXPECT_EQ(weights("step-3", "absent"), "not_found");
}

TEST_F(policy_pool_simulation, a_version_that_changes_in_flight_claims_no_token) {
  attach("a");
  member("a").silent = true;
  weights("step-1");
  ask(1, "s");
  weights("step-2");
  answer_now("a");
  EXPECT_EQ(versions(1), "step-1..step-2[0,7)");
}

TEST_F(policy_pool_simulation, what_an_engine_says_of_its_weights_wins) {
  attach("a", "vllm");
  weights("declared");
  member("a").own_version = "own";
  ask(1, "s");
  EXPECT_EQ(versions(1), "own[0,7)");
  member("a").own_version = "";
  ask(2, "s");
  EXPECT_EQ(versions(2), "declared[0,7)");
}

TEST_F(policy_pool_simulation, what_stands_for_a_version_gives_way_to_a_declared_one) {
  attach("a");
  member("a").own_version = "fp_1234";
  ask(1, "s");
  EXPECT_EQ(versions(1), "fp_1234[0,7)");
  weights("step-1");
  ask(2, "s");
  EXPECT_EQ(versions(2), "step-1[0,7)");
}

TEST_F(policy_pool_simulation, what_cannot_be_attached_is_refused) {
  EXPECT_EQ(attach("a", "gopher"), "invalid_value");
  EXPECT_EQ(attach("a"), "");
  EXPECT_EQ(attach("a"), "policy_attached");
  EXPECT_EQ(attach("spaced name"), "bad_configuration");
  EXPECT_EQ(detach("absent", 0), "not_found");
}

TEST_F(policy_pool_simulation, the_end_of_the_pool_answers_everybody) {
  ask(1, "s");
  attach("a");
  member("a").silent = true;
  ask(2, "s");
  caf::anon_send_exit(pool, caf::exit_reason::user_shutdown);
  run();
  EXPECT_EQ(category(2), "cancelled");
  EXPECT_EQ(member("a").given_up, 0) << "its members end with it";
}

} // namespace policy_pool_test
} // namespace kernelmill
