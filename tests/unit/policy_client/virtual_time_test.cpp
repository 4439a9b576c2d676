// The actor on CAF's deterministic scheduler, with virtual time and a transport that the test
// plays: hours of back-off pass in milliseconds, and every run is the same.

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include <stdlib.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

#include "actors/policy_client/http_policy_client.hpp"

namespace kernelmill {
namespace virtual_time_test {

using namespace std::chrono_literals;
using result_message = Message<wire::CompletionResult>;

http_response status(long code, std::string body = {}, std::string retry_after = {}) {
  http_response x;
  x.status = code;
  x.body = std::move(body);
  if (!retry_after.empty()) x.headers.emplace_back("retry-after", retry_after);
  return x;
}

// Keeps what is submitted; the test answers when it likes.
class played_transport final : public http_transport {
public:
  struct call {
    http_request request;
    callback done;
  };

  uint64_t submit(http_request request, callback done) override {
    // The probe of the models is none of most tests' business.
    if (!request.post) {
      if (answers_probes) done(status(probe_status));
      return next_++;
    }
    last_body = request.body;
    if (reply) {
      ids.push_back(header(request, "X-Request-Id"));
      done(reply(static_cast<uint32_t>(ids.size())));
      return next_++;
    }
    ids.push_back(header(request, "X-Request-Id"));
    calls[next_] = {std::move(request), std::move(done)};
    return next_++;
  }

  void cancel(uint64_t id) override {
    auto i = calls.find(id);
    if (i == calls.end()) return;
    auto done = std::move(i->second.done);
    http_response said;
    if (i->second.request.on_data) said.status = 200;
    calls.erase(i);
    ++cancelled;
    said.fault = transport_fault::cancelled;
    done(std::move(said));
  }

  void answer_first(http_response response) {
    ASSERT_FALSE(calls.empty());
    auto done = std::move(calls.begin()->second.done);
    calls.erase(calls.begin());
    done(std::move(response));
  }

  static std::string header(const http_request& request, const std::string& name) {
    for (const auto& [key, value] : request.headers)
      if (key == name) return value;
    return {};
  }

  std::function<http_response(uint32_t)> reply; ///< answers the n-th attempt at once
  std::map<uint64_t, call> calls;
  std::vector<std::string> ids;
  std::string last_body;
  bool answers_probes = false;
  long probe_status = 200;
  int cancelled = 0;

private:
  uint64_t next_ = 1;
};

http_response fault(transport_fault kind) {
  http_response x;
  x.fault = kind;
  x.detail = "as the test says";
  return x;
}

http_response good() {
  return status(200, R"({"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]})");
}

/// The log of a client, as a file that goes with it.
struct client_log {
  client_log() {
    EXPECT_NE(::mkdtemp(dir.data()), nullptr);
    log_options options;
    options.file = dir + "/log";
    log = logger::open(options).value();
  }
  ~client_log() {
    std::error_code ignored;
    std::filesystem::remove_all(dir, ignored);
  }
  client_log(const client_log&) = delete;
  client_log& operator=(const client_log&) = delete;

  std::string text() {
    log.close();
    std::ifstream in{dir + "/log"};
    return (std::ostringstream{} << in.rdbuf()).str();
  }

  std::string dir = std::string{::testing::TempDir()} + "/policy_log_XXXXXX";
  logger log;
};

struct policy_client_simulation : testing::Test {
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.policy", caf::atom("testing"));
    }
  };

  policy_client_simulation() {
    scheduler.clock().current_time += 1h;
    config.base_url = "http://server/v1";
    config.model = "m";
    config.transport = transport;
  }

  ~policy_client_simulation() override {
    for (auto& x : spawned) caf::anon_send_exit(x, caf::exit_reason::kill);
    run();
  }

  policy_client_actor& spawn() {
    client = system.spawn(http_policy_client, config);
    spawned.push_back(caf::actor_cast<caf::actor>(client));
    run();
    return client;
  }

  void run() {
    while (scheduler.try_run_once()) {
    }
  }

  void advance(std::chrono::milliseconds total, std::chrono::milliseconds step = 10ms) {
    for (auto t = 0ms; t < total; t += step) {
      scheduler.clock().advance_time(step);
      run();
    }
  }

  // Asks from an actor of its own, which keeps the answer.
  caf::actor ask(uint32_t number, uint32_t deadline_ms = 0, uint64_t run_id = 1) {
    auto request = build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
      x.setSession("run/g" + std::to_string(number) + ".e0");
      x.setDeadlineMs(deadline_ms);
      auto message = x.initMessages(1)[0];
      message.setRole("user");
      message.setContent("hello");
    });
    envelope env;
    env.run = run_id;
    auto asker = system.spawn([=, this](caf::event_based_actor* self) {
      self->request(client, 86400s, atom::complete_v, env, request)
          .then([=, this](const result_message& x) { answers[number] = x; },
                [=, this](caf::error&) { errors.push_back(number); });
    });
    spawned.push_back(asker);
    run();
    return asker;
  }

  std::string category(uint32_t number) {
    auto i = answers.find(number);
    return i == answers.end() ? "unanswered" : i->second.open()->getFault().getCategory().cStr();
  }
  wire::FaultClass cls(uint32_t number) { return answers[number].open()->getFault().getClass(); }

  double number_of(const char* name) {
    caf::scoped_actor self{system, true};
    auto handle = self->request(client, caf::infinite, atom::status_v);
    run();
    double result = -1;
    handle.receive(
        [&](const Message<wire::Snapshot>& x) {
          auto view = x.open();
          for (auto q : view->getNumbers())
            if (q.getName() == name) result = q.getValue();
        },
        [](caf::error&) { FAIL(); });
    return result;
  }

  configuration cfg;
  caf::actor_system system{cfg};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::shared_ptr<played_transport> transport = std::make_shared<played_transport>();
  policy_config config;
  policy_client_actor client;
  std::vector<caf::actor> spawned;
  std::map<uint32_t, result_message> answers;
  std::vector<uint32_t> errors;
};

TEST_F(policy_client_simulation, an_answer_comes_through) {
  transport->reply = [](uint32_t) { return good(); };
  spawn();
  ask(1);
  ASSERT_EQ(category(1), "");
  auto x = answers[1].open();
  EXPECT_STREQ(x->getText().cStr(), "hi");
  EXPECT_EQ(x->getAttempts(), 1u);
  EXPECT_STREQ(x->getRequestId().cStr(), "run/g1.e0.t0.a1");
}

TEST_F(policy_client_simulation, retries_are_logged_with_their_cause_and_without_the_key) {
  client_log kept;
  std::ofstream{kept.dir + "/key"} << "sk-topsecret";
  config.log = kept.log;
  config.api_key_file = kept.dir + "/key";
  transport->reply = [](uint32_t n) {
    return n < 3 ? status(500, R"({"error": {"message": "\u001b[2Jno sk-topsecret today"}})")
                 : good();
  };
  spawn();
  ask(1);
  advance(5min, 100ms);
  ASSERT_EQ(category(1), "");
  // What others say of the key is hidden too, for as long as the client lives.
  config.log.warn({}, "another said sk-topsecret");
  auto text = kept.text();
  EXPECT_NE(text.find("warn  actor=policy-client run=run episode=g1.e0 turn=0 | "
                      "http://server/v1: attempt 1 failed, the next in "),
            text.npos)
      << text;
  EXPECT_NE(text.find("attempt 2 failed"), text.npos) << text;
  EXPECT_NE(text.find("no [key] today"), text.npos) << text;
  EXPECT_NE(text.find("another said [key]"), text.npos) << text;
  EXPECT_NE(text.find("answered at attempt 3"), text.npos) << text;
  EXPECT_EQ(text.find("topsecret"), text.npos) << text;
  EXPECT_EQ(text.find('\x1b'), text.npos) << text;
}

TEST_F(policy_client_simulation, trouble_is_survived_with_a_new_id_for_each_attempt) {
  transport->reply = [](uint32_t n) {
    return n == 1   ? status(503)
           : n == 2 ? fault(transport_fault::reset)
           : n < 6  ? status(500)
                    : good();
  };
  spawn();
  ask(1);
  EXPECT_EQ(category(1), "unanswered");
  advance(5min, 100ms);
  ASSERT_EQ(category(1), "");
  EXPECT_EQ(answers[1].open()->getAttempts(), 6u);
  EXPECT_EQ(transport->ids.back(), "run/g1.e0.t0.a6");
  EXPECT_EQ(std::set<std::string>(transport->ids.begin(), transport->ids.end()).size(), 6u);
  EXPECT_EQ(number_of("retries"), 5);
}

TEST_F(policy_client_simulation, a_retry_after_is_kept_to) {
  transport->reply = [](uint32_t n) { return n == 1 ? status(429, "", "7") : good(); };
  spawn();
  ask(1);
  advance(6990ms);
  EXPECT_EQ(transport->ids.size(), 1u);
  EXPECT_EQ(number_of("backing_off"), 1);
  advance(520ms);
  EXPECT_EQ(category(1), "");
}

TEST_F(policy_client_simulation, a_retry_after_beyond_the_deadline_ends_the_matter_at_once) {
  transport->reply = [](uint32_t) { return status(429, "", "120"); };
  spawn();
  ask(1, 60000);
  EXPECT_EQ(category(1), "policy_rate_limited");
  EXPECT_EQ(cls(1), wire::FaultClass::INFRASTRUCTURE);
}

TEST_F(policy_client_simulation, the_deadline_ends_a_stall_and_its_transfer) {
  spawn();
  ask(1, 5000);
  advance(4900ms);
  EXPECT_EQ(category(1), "unanswered");
  EXPECT_EQ(transport->calls.size(), 1u);
  advance(200ms);
  EXPECT_EQ(transport->cancelled, 1);
  EXPECT_EQ(number_of("in_flight"), 0);
  EXPECT_EQ(category(1), "unanswered") << "the server is asked whether it is well";
  advance(1s);
  EXPECT_EQ(category(1), "policy_timeout");
  EXPECT_EQ(cls(1), wire::FaultClass::INFRASTRUCTURE);
}

TEST_F(policy_client_simulation, an_answer_that_takes_too_long_at_a_server_that_is_well) {
  transport->answers_probes = true;
  spawn();
  ask(1, 5000);
  advance(5100ms);
  EXPECT_EQ(category(1), "answer_overdue");
  EXPECT_EQ(cls(1), wire::FaultClass::POLICY);
}

// Of a proxy before an engine that is gone.
TEST_F(policy_client_simulation, a_server_that_answers_502_is_not_well) {
  transport->answers_probes = true;
  transport->probe_status = 502;
  spawn();
  ask(1, 5000);
  advance(6100ms);
  EXPECT_EQ(category(1), "policy_timeout");
}

TEST_F(policy_client_simulation, what_came_of_a_late_answer_is_kept) {
  config.stream = true;
  transport->answers_probes = true;
  spawn();
  ask(1, 5000);
  for (const auto* word : {"one ", "two"}) {
    auto event = std::string{R"(data: {"choices":[{"delta":{"content":")"} + word + "\"}}]}\n\n";
    EXPECT_TRUE(transport->calls.begin()->second.request.on_data(event));
  }
  advance(5100ms);
  EXPECT_EQ(category(1), "answer_overdue");
  EXPECT_STREQ(answers[1].open()->getText().cStr(), "one two");
}

// It lists its models and completes nothing: that is no policy's doing.
TEST_F(policy_client_simulation, a_server_at_which_all_answers_are_late_is_not_well) {
  transport->answers_probes = true;
  spawn();
  for (uint32_t n = 1; n <= 9; ++n) {
    ask(n, 5000);
    advance(6100ms);
    EXPECT_EQ(category(n), n <= 8 ? "answer_overdue" : "policy_timeout") << n;
  }
}

// Of a request's time the server had less than half: the rest went to waiting for it.
TEST_F(policy_client_simulation, a_late_start_is_not_charged_to_the_policy) {
  transport->answers_probes = true;
  transport->reply = [](uint32_t) { return status(503, "", "4"); };
  spawn();
  ask(1, 5000);
  advance(3900ms);
  transport->reply = nullptr; // the next attempt stalls
  advance(1300ms);
  EXPECT_EQ(transport->cancelled, 1);
  EXPECT_EQ(category(1), "policy_unavailable");
  EXPECT_EQ(cls(1), wire::FaultClass::INFRASTRUCTURE);
}

TEST_F(policy_client_simulation, max_tokens_is_cut_to_what_the_context_leaves) {
  transport->reply = [](uint32_t n) {
    return n == 1
               ? status(
                     400,
                     R"({"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (4904 in the messages, 4096 in the completion)."}})")
               : good();
  };
  spawn();
  ask(1);
  EXPECT_EQ(category(1), "");
  EXPECT_EQ(answers[1].open()->getAttempts(), 2u);
  EXPECT_NE(transport->last_body.find(R"("max_tokens":3288)"), std::string::npos)
      << transport->last_body;
}

TEST_F(policy_client_simulation, a_parser_that_swallows_answers_is_named_after_three) {
  client_log kept;
  config.log = kept.log;
  config.kind = server_kind::vllm;
  transport->reply = [](uint32_t) {
    return status(200, R"({"choices":[{"message":{"content":null,"reasoning":"all of it"},
                           "finish_reason":"stop"}]})");
  };
  spawn();
  for (uint32_t n = 1; n <= 4; ++n) ask(n);
  auto text = kept.text();
  auto first = text.find("3 answers in a row had no content");
  EXPECT_NE(first, text.npos) << text;
  EXPECT_NE(text.find("--reasoning-parser", first), text.npos) << text;
  EXPECT_EQ(text.find("in a row", first + 1 + std::string{"3 answers in a row"}.size()), text.npos)
      << text;
}

TEST_F(policy_client_simulation, a_lasting_fault_is_named_when_the_deadline_ends_it) {
  transport->reply = [](uint32_t) { return status(200, "garbage"); };
  spawn();
  ask(1, 60000);
  advance(61s, 50ms);
  EXPECT_EQ(category(1), "policy_bad_response");
  auto x = answers[1].open();
  EXPECT_GT(x->getAttempts(), 3u);
  EXPECT_NE(std::string{x->getFault().getMessage().cStr()}.find("garbage"), std::string::npos);
}

TEST_F(policy_client_simulation, a_server_that_never_was_there_is_the_configurations_fault) {
  transport->reply = [](uint32_t) { return fault(transport_fault::refused); };
  spawn();
  ask(1);
  ask(2);
  advance(29s, 50ms);
  EXPECT_EQ(category(1), "unanswered");
  advance(2s, 50ms);
  for (uint32_t n : {1, 2}) {
    EXPECT_EQ(category(n), "policy_unreachable");
    EXPECT_EQ(cls(n), wire::FaultClass::CONFIGURATION);
  }
}

TEST_F(policy_client_simulation, a_server_that_was_there_may_stay_away_until_the_deadline) {
  transport->reply = [](uint32_t n) { return n == 1 ? good() : fault(transport_fault::refused); };
  spawn();
  ask(1);
  ask(2, 300000);
  advance(299s, 100ms);
  EXPECT_EQ(category(2), "unanswered");
  advance(2s, 100ms);
  EXPECT_EQ(category(2), "policy_unreachable");
  EXPECT_EQ(cls(2), wire::FaultClass::INFRASTRUCTURE);
}

TEST_F(policy_client_simulation, a_wrong_key_ends_all_that_wait_at_once) {
  config.max_in_flight = 1;
  spawn();
  for (uint32_t n : {1, 2, 3}) ask(n);
  EXPECT_EQ(number_of("queued"), 2);
  transport->answer_first(status(401, R"({"error":{"message":"Incorrect API key provided"}})"));
  run();
  for (uint32_t n : {1, 2, 3}) {
    EXPECT_EQ(category(n), "policy_auth");
    EXPECT_EQ(cls(n), wire::FaultClass::CONFIGURATION);
  }
  ask(4);
  EXPECT_EQ(category(4), "policy_auth");
  EXPECT_EQ(transport->ids.size(), 1u);
  advance(11s, 100ms);
  ask(5);
  EXPECT_EQ(transport->ids.size(), 2u) << "after a while the server is asked once more";
}

TEST_F(policy_client_simulation, a_wrong_key_is_logged_once_with_how_many_it_ended) {
  client_log kept;
  config.log = kept.log;
  config.max_in_flight = config.first_window = 2;
  spawn();
  for (uint32_t n : {1, 2, 3, 4, 5}) ask(n);
  ASSERT_EQ(transport->calls.size(), 2u);
  auto refusal = status(401, R"({"error":{"message":"Incorrect API key provided"}})");
  transport->answer_first(refusal);
  run();
  EXPECT_EQ(category(5), "policy_auth");
  transport->answer_first(refusal); // of the other one in flight
  run();
  EXPECT_EQ(category(2), "policy_auth");
  advance(11s, 100ms);
  ask(6);
  transport->answer_first(good());
  run();
  auto text = kept.text();
  auto first = text.find("error actor=policy-client | http://server/v1: the policy server answered "
                         "401: Incorrect API key provided");
  auto rest = text.find("answered 401", text.find("; 4 requests ended so\n", first));
  ASSERT_NE(first, text.npos) << text;
  EXPECT_NE(text.find("; 1 more request ended so\n", rest), text.npos) << text;
  EXPECT_EQ(text.find("answered 401", rest + 1), text.npos) << text;
  EXPECT_EQ(text.find("warn"), text.npos) << text;
}

TEST_F(policy_client_simulation, a_context_overflow_concerns_one_conversation_only) {
  transport->reply = [](uint32_t n) {
    return n == 1 ? status(400, R"({"error":{"code":"context_length_exceeded","message":"long"}})")
                  : good();
  };
  spawn();
  ask(1);
  ask(2);
  EXPECT_EQ(category(1), "context_overflow");
  EXPECT_EQ(cls(1), wire::FaultClass::POLICY);
  EXPECT_EQ(category(2), "");
}

TEST_F(policy_client_simulation, the_window_bounds_what_the_server_sees_and_runs_take_turns) {
  config.max_in_flight = 1;
  spawn();
  ask(0, 0, 9);
  for (uint32_t n : {1, 2, 3}) ask(n, 0, 1);
  for (uint32_t n : {11, 12}) ask(n, 0, 2);
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(transport->calls.size(), 1u);
    transport->answer_first(good());
    run();
  }
  std::string order;
  for (const auto& id : transport->ids) order += id.substr(4, id.find('.') - 4) + " ";
  EXPECT_EQ(order, "g0 g1 g11 g2 g12 g3 ");
}

TEST_F(policy_client_simulation, an_open_circuit_spares_the_server) {
  transport->reply = [](uint32_t) { return status(500); };
  spawn();
  for (uint32_t n = 0; n < 50; ++n) ask(n, 600000);
  EXPECT_EQ(transport->ids.size(), 8u);
  advance(60s, 50ms);
  EXPECT_LT(transport->ids.size(), 20u);
  transport->reply = [](uint32_t) { return good(); };
  advance(120s, 50ms);
  for (uint32_t n = 0; n < 50; ++n) EXPECT_EQ(category(n), "") << n;
}

TEST_F(policy_client_simulation, a_request_ends_with_its_asker) {
  config.max_in_flight = 1;
  spawn();
  auto first = ask(1);
  auto second = ask(2);
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
  run();
  EXPECT_EQ(transport->cancelled, 1);
  EXPECT_EQ(transport->ids.back(), "run/g2.e0.t0.a1");
  transport->answer_first(good());
  run();
  EXPECT_EQ(category(2), "");
  EXPECT_EQ(number_of("in_flight"), 0);
}

TEST_F(policy_client_simulation, the_end_of_the_actor_answers_everybody) {
  for (auto reason : {caf::exit_reason::user_shutdown, caf::exit_reason::kill}) {
    answers.clear();
    transport->cancelled = 0;
    config.max_in_flight = 2;
    spawn();
    for (uint32_t n : {1, 2, 3}) ask(n);
    caf::anon_send_exit(client, reason);
    run();
    for (uint32_t n : {1, 2, 3}) EXPECT_EQ(category(n), "cancelled") << n;
    EXPECT_EQ(transport->cancelled, 2);
  }
}

TEST_F(policy_client_simulation, a_bad_configuration_is_answered_to_everyone) {
  config.model = "";
  spawn();
  ask(1);
  EXPECT_EQ(category(1), "bad_configuration");
  EXPECT_EQ(cls(1), wire::FaultClass::CONFIGURATION);
}

TEST_F(policy_client_simulation, a_late_answer_of_a_cancelled_attempt_is_ignored) {
  spawn();
  ask(1, 1000);
  auto done = transport->calls.begin()->second.done;
  advance(2100ms);
  EXPECT_EQ(category(1), "policy_timeout");
  done(good());
  run();
  EXPECT_EQ(category(1), "policy_timeout");
  EXPECT_EQ(number_of("completed"), 0);
}

TEST_F(policy_client_simulation, an_unreadable_request_is_answered_as_malformed) {
  spawn();
  auto words = kj::heapArray<capnp::word>(2);
  std::memset(static_cast<void*>(words.begin()), 0xff, 16);
  reinterpret_cast<uint32_t*>(words.begin())[0] = 0;
  reinterpret_cast<uint32_t*>(words.begin())[1] = 1;
  Message<wire::CompletionRequest> broken{std::move(words)};
  caf::scoped_actor self{system, true};
  auto handle = self->request(client, caf::infinite, atom::complete_v, envelope{}, broken);
  run();
  std::string got;
  handle.receive([&](const result_message& x) { got = x.open()->getFault().getCategory().cStr(); },
                 [&](caf::error& e) { got = to_string(e); });
  EXPECT_EQ(got, "malformed_message");
}

} // namespace virtual_time_test
} // namespace kernelmill
