// The real actor, the real libcurl thread and the real scripted server, over loopback.

#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

#include "actors/policy_client/http/open_files.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "launch/server/scripted/scripted_server.hpp"
#include "tests/integration/policy_client/raw_server.hpp"

namespace kernelmill {
namespace policy_over_http_test {

using result_message = Message<wire::CompletionResult>;

struct policy_over_http : testing::Test {
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.policy", caf::atom("sharing"));
      set("scheduler.max-threads", size_t{2});
    }
  };

  ~policy_over_http() override {
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
    ::unsetenv("KERNELMILL_TEST_KEY");
  }

  // Starts a server whose script has one reply and these faults, and a client for it.
  void start(const std::string& faults, bool stream = false, const std::string& more = {}) {
    auto script =
        parse_policy_script(R"({"model":"m","replies":[{"text":"one two three"}],"faults":[)" +
                                faults + "]" + more + "}",
                            "test", "/");
    ASSERT_TRUE(script) << render(script.error());
    scripted_server_options options;
    options.observe = [this](const scripted_observation& x) {
      std::lock_guard guard{mutex};
      observed.push_back(x);
    };
    auto started = scripted_server::start(*script, options);
    ASSERT_TRUE(started) << render(started.error());
    server = std::move(*started);
    config.base_url = server->base_url();
    config.stream = stream;
    connect();
  }

  void connect() {
    config.model = "m";
    client = system.spawn(http_policy_client, config);
  }

  static Message<wire::CompletionRequest> request(uint32_t deadline_ms = 30000,
                                                  const std::string& session = "run/g0.e0",
                                                  size_t filler = 0) {
    return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
      x.setSession(session);
      x.setDeadlineMs(deadline_ms);
      x.initSampling().setLogprobs(true);
      auto message = x.initMessages(1)[0];
      message.setRole("user");
      message.setContent("hello" + std::string(filler, 'x'));
    });
  }

  result_message ask(uint32_t deadline_ms = 30000, size_t filler = 0) {
    result_message result;
    self->request(client, std::chrono::seconds{100}, atom::complete_v, envelope{},
                  request(deadline_ms, "run/g0.e0", filler))
        .receive([&](const result_message& x) { result = x; },
                 [&](caf::error& e) { ADD_FAILURE() << system.render(e); });
    return result;
  }

  // Returns how many of the next answers are what the script says.
  int receive_good(int count) {
    int good = 0;
    for (int i = 0; i < count; ++i)
      self->receive(
          [&](const result_message& message) {
            good += message.open()->getText() == "one two three" ? 1 : 0;
          },
          caf::after(std::chrono::seconds{90}) >> [] { ADD_FAILURE() << "a request is lost"; });
    return good;
  }

  double number_of(const std::string& name) {
    double result = -1;
    caf::scoped_actor asker{system};
    asker->request(client, std::chrono::seconds{30}, atom::status_v)
        .receive(
            [&](const Message<wire::Snapshot>& x) {
              auto view = x.open();
              for (auto n : view->getNumbers())
                if (n.getName() == name) result = n.getValue();
            },
            [&](caf::error& e) { ADD_FAILURE() << system.render(e); });
    return result;
  }

  static int open_files() {
    std::filesystem::directory_iterator files{"/proc/self/fd"};
    return static_cast<int>(std::distance(begin(files), end(files)));
  }

  void expect_text(const result_message& message, uint32_t attempts) {
    auto x = message.open();
    EXPECT_STREQ(x->getText().cStr(), "one two three") << x->getFault().getMessage().cStr();
    EXPECT_EQ(x->getAttempts(), attempts);
    EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
    EXPECT_EQ(x->getLogprobs().size(), 3u);
  }

  void expect_fault(const result_message& message, wire::FaultClass cls, const char* category) {
    auto x = message.open();
    EXPECT_EQ(x->getFault().getClass(), cls) << x->getFault().getMessage().cStr();
    EXPECT_STREQ(x->getFault().getCategory().cStr(), category);
    EXPECT_STRNE(x->getFault().getMessage().cStr(), "");
  }

  // One fault, once; the attempt after it succeeds.
  void expect_survived(const std::string& fault) {
    for (bool stream : {false, true}) {
      SCOPED_TRACE(fault + (stream ? ", streamed" : ""));
      start(fault, stream);
      expect_text(ask(), 2);
      EXPECT_EQ(server->requests(), 2u);
      caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
    }
  }

  configuration cfg;
  caf::actor_system system{cfg};
  caf::scoped_actor self{system};
  policy_config config;
  std::mutex mutex;
  std::vector<scripted_observation> observed;
  std::unique_ptr<scripted_server> server;
  policy_client_actor client;
};

TEST_F(policy_over_http, a_completion_arrives_with_its_facts) {
  start("");
  auto message = ask();
  expect_text(message, 1);
  auto x = message.open();
  EXPECT_STREQ(x->getModel().cStr(), "m");
  EXPECT_STREQ(x->getFinishReason().cStr(), "stop");
  EXPECT_STREQ(x->getRequestId().cStr(), "run/g0.e0.t0.a1");
  EXPECT_EQ(x->getCompletionTokens(), 3u);
  EXPECT_EQ(x->getPromptTokens(), 2u) << "one word, and the line end after it";
  EXPECT_GT(x->getSeconds(), 0);
  ASSERT_EQ(observed.size(), 1u);
  EXPECT_EQ(observed[0].request.session, "run/g0.e0");
  EXPECT_EQ(observed[0].request.request_id, "run/g0.e0.t0.a1");
}

TEST_F(policy_over_http, a_streamed_completion_is_the_same) {
  config.kind = server_kind::vllm;
  start("", true);
  auto message = ask();
  expect_text(message, 1);
  auto x = message.open();
  EXPECT_EQ(x->getTokenIds().size(), 3u);
  EXPECT_EQ(x->getPromptTokenIds().size(), 2u);
  EXPECT_EQ(x->getCompletionTokens(), 3u);
  EXPECT_TRUE(observed[0].request.stream);
}

TEST_F(policy_over_http, a_500_is_survived) {
  expect_survived(R"({"status":500,"times":1})");
}
TEST_F(policy_over_http, a_503_is_survived) {
  expect_survived(R"({"status":503,"times":1})");
}
TEST_F(policy_over_http, garbage_is_survived) {
  expect_survived(R"({"kind":"garbage","times":1})");
}
TEST_F(policy_over_http, a_truncated_body_is_survived) {
  expect_survived(R"({"kind":"truncate","times":1})");
}
TEST_F(policy_over_http, a_reset_is_survived) {
  for (bool stream : {false, true}) {
    start(R"({"kind":"reset","times":1})", stream);
    auto message = ask();
    auto x = message.open();
    EXPECT_STREQ(x->getText().cStr(), "one two three");
    // On a connection that the probe of the models has left, libcurl replaces it by itself.
    EXPECT_LE(x->getAttempts(), 2u);
    EXPECT_EQ(server->requests(), 2u);
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  }
}
TEST_F(policy_over_http, an_abort_is_survived) {
  expect_survived(R"({"kind":"abort","times":1})");
}
TEST_F(policy_over_http, an_error_within_a_200_is_survived) {
  expect_survived(R"({"kind":"error","times":1})");
}

TEST_F(policy_over_http, a_429_is_tried_again_after_what_it_asks_for) {
  start(R"({"status":429,"retry_after":1,"times":1})");
  auto message = ask();
  expect_text(message, 2);
  EXPECT_GE(message.open()->getSeconds(), 1.0);
}

TEST_F(policy_over_http, an_answer_that_takes_too_long_at_a_server_that_is_well_is_the_policys) {
  for (bool stream : {false, true}) {
    start(R"({"kind":"stall"})", stream);
    expect_fault(ask(400), wire::FaultClass::POLICY, "answer_overdue");
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  }
}

TEST_F(policy_over_http, a_stream_that_falls_silent_is_tried_again) {
  config.stall_ms = 3000; // a busy machine makes the second one pause, too
  start(R"({"kind":"stall","times":1})", true);
  expect_text(ask(), 2);
}

TEST_F(policy_over_http, a_huge_answer_is_the_policys_fault_and_what_came_is_kept) {
  for (bool stream : {false, true}) {
    start(R"({"kind":"huge","bytes":6000000})", stream);
    auto message = ask();
    expect_fault(message, wire::FaultClass::POLICY, "policy_response_too_large");
    EXPECT_EQ(message.open()->getText().size() > 0, stream);
    EXPECT_EQ(server->requests(), 1u);
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  }
}

TEST_F(policy_over_http, a_context_overflow_is_the_policys_fault) {
  start(R"({"status":400,"message":"This model's maximum context length is 4096 tokens"})");
  expect_fault(ask(), wire::FaultClass::POLICY, "context_overflow");
  EXPECT_EQ(server->requests(), 1u);
}

TEST_F(policy_over_http, an_unknown_model_is_the_configurations_fault) {
  start("");
  config.model = "other";
  client = system.spawn(http_policy_client, config);
  expect_fault(ask(), wire::FaultClass::CONFIGURATION, "policy_not_found");
}

TEST_F(policy_over_http, the_right_key_opens_and_a_wrong_one_stops_at_once) {
  ::setenv("KERNELMILL_TEST_KEY", "sk-right", 1);
  config.api_key_env = "KERNELMILL_TEST_KEY";
  start("", false, R"(,"require_key_env":"KERNELMILL_TEST_KEY")");
  expect_text(ask(), 1);
  EXPECT_EQ(observed[0].authorization, "Bearer");
  ::setenv("KERNELMILL_TEST_KEY", "sk-wrong", 1);
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  connect();
  expect_fault(ask(), wire::FaultClass::CONFIGURATION, "policy_auth");
  EXPECT_EQ(server->requests(), 2u);
}

TEST_F(policy_over_http, a_key_that_the_server_quotes_is_not_repeated) {
  ::setenv("KERNELMILL_TEST_KEY", "sk-secret-0815", 1);
  raw_server quoting{[](const std::string&, int) {
    std::string body = R"({"error":{"message":"Incorrect API key provided: sk-secret-0815"}})";
    return "HTTP/1.1 401 Unauthorized\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }};
  config.api_key_env = "KERNELMILL_TEST_KEY";
  config.base_url = quoting.url("/v1");
  connect();
  auto message = ask();
  expect_fault(message, wire::FaultClass::CONFIGURATION, "policy_auth");
  auto x = message.open();
  EXPECT_NE(std::string{x->getFault().getMessage().cStr()}.find("[key]"), std::string::npos);
  self->request(client, std::chrono::seconds{10}, atom::status_v)
      .receive(
          [&](const Message<wire::Snapshot>& s) {
            auto view = s.open();
            EXPECT_EQ(std::string{view->getDetail().cStr()}.find("0815"), std::string::npos);
            EXPECT_STREQ(view->getState().cStr(), "stopped");
          },
          [&](caf::error& e) { ADD_FAILURE() << system.render(e); });
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  self->wait_for(client);
}

// What an answer says is stored, shown and learned from.
TEST_F(policy_over_http, a_key_that_the_server_answers_with_is_in_no_answer) {
  ::setenv("KERNELMILL_TEST_KEY", "sk-secret-0815", 1);
  raw_server echo{[](const std::string&, int) {
    std::string body = R"({"model":"m of sk-secret-0815","system_fingerprint":"sk-secret-0815",)"
                       R"("choices":[{"index":0,"finish_reason":"stop","message":{)"
                       R"("role":"assistant","reasoning_content":"Bearer sk-secret-0815",)"
                       R"("content":"Authorization: Bearer sk-secret-0815"}}]})";
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }};
  config.api_key_env = "KERNELMILL_TEST_KEY";
  config.base_url = echo.url("/v1");
  connect();
  auto message = ask();
  auto x = message.open();
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE) << x->getFault().getMessage().cStr();
  EXPECT_NE(std::string{x->getText().cStr()}.find("Bearer [key]"), std::string::npos);
  EXPECT_STREQ(x->getModel().cStr(), "m of [key]");
  std::string all{message.data(), message.size()};
  EXPECT_EQ(all.find("0815"), std::string::npos);
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  self->wait_for(client);
}

TEST_F(policy_over_http, a_port_without_a_listener_is_the_configurations_fault_after_a_while) {
  {
    raw_server gone{[](const std::string&, int) { return std::string{}; }};
    config.base_url = gone.url("/v1");
  }
  config.first_contact_ms = 300;
  connect();
  expect_fault(ask(), wire::FaultClass::CONFIGURATION, "policy_unreachable");
}

TEST_F(policy_over_http, a_port_without_a_listener_ends_at_a_deadline_that_is_nearer) {
  {
    raw_server gone{[](const std::string&, int) { return std::string{}; }};
    config.base_url = gone.url("/v1");
  }
  connect();
  // Time for an attempt, on a busy machine too: who has made none knows of no server that is away.
  constexpr uint32_t deadline_ms = 10000;
  expect_fault(ask(deadline_ms), wire::FaultClass::CONFIGURATION, "policy_unreachable");
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  config.first_contact_ms = 0;
  connect();
  expect_fault(ask(deadline_ms), wire::FaultClass::INFRASTRUCTURE, "policy_unreachable");
}

TEST_F(policy_over_http, a_server_whose_first_answer_takes_long_is_no_missing_one) {
  // It says nothing of its models, so the completion is its first word; that comes when the other
  // request has expired.
  std::promise<void> has_expired;
  std::shared_future<void> may_answer{has_expired.get_future()};
  raw_server slow{[may_answer](const std::string& head, int) -> std::string {
    if (!head.starts_with("POST")) return {};
    may_answer.wait();
    std::string body =
        R"({"object":"chat.completion","model":"m","choices":[{"index":0,)"
        R"("finish_reason":"stop","message":{"role":"assistant","content":"late"}}]})";
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }};
  config.base_url = slow.url("/v1");
  config.first_contact_ms = 100;
  connect();
  self->send(client, atom::complete_v, envelope{}, request(60000, "run/g0.e0"));
  // The deadline of another one is when the client looks at its clock.
  self->send(client, atom::complete_v, envelope{}, request(1000, "run/g1.e0"));
  int late = 0, expired = 0;
  for (int i = 0; i < 2; ++i) {
    self->receive(
        [&](const result_message& message) {
          auto x = message.open();
          late += x->getText() == "late";
          expired += x->getFault().getCategory() == "policy_timeout";
        },
        caf::after(std::chrono::seconds{90}) >> [] { ADD_FAILURE() << "a request is lost"; });
    if (i == 0) has_expired.set_value();
  }
  EXPECT_EQ(late, 1);
  EXPECT_EQ(expired, 1);
}

TEST_F(policy_over_http, a_large_prompt_goes_through) {
  start("");
  expect_text(ask(30000, size_t{2} << 20), 1);
}

TEST_F(policy_over_http, five_hundred_requests_at_once_are_all_answered) {
  config.max_in_flight = 256;
  start(R"({"status":503,"every":9},{"kind":"truncate","every":11})", true);
  constexpr int count = 500;
  for (int i = 0; i < count; ++i)
    self->send(client, atom::complete_v, envelope{},
               request(60000, "run/g" + std::to_string(i) + ".e0"));
  int good = 0;
  std::set<std::string> ids;
  for (int i = 0; i < count; ++i)
    self->receive(
        [&](const result_message& message) {
          auto x = message.open();
          good += x->getText() == "one two three" ? 1 : 0;
          ids.insert(x->getRequestId().cStr());
        },
        caf::after(std::chrono::seconds{90}) >> [] { FAIL() << "a request is lost"; });
  EXPECT_EQ(good, count);
  EXPECT_EQ(ids.size(), static_cast<size_t>(count));
  EXPECT_EQ(server->requests(), count + server->faults());
  EXPECT_GT(server->faults(), 50u);
}

// The server's thread stands still until all requests are on connections of their own.
TEST_F(policy_over_http, two_thousand_requests_are_in_flight_at_once_and_all_answered) {
  constexpr int count = 2000;
  if (allow_open_files(3 * count) < 3 * count)
    GTEST_SKIP() << "the hard limit of open files is too low";
  std::promise<void> all_are_there;
  std::shared_future<void> wait{all_are_there.get_future()};
  scripted_server_options options;
  options.observe = [wait](const scripted_observation&) { wait.wait(); };
  auto started = scripted_server::start(
      *parse_policy_script(R"({"model":"m","replies":[{"text":"one two three"}]})", "test", "/"),
      options);
  ASSERT_TRUE(started) << render(started.error());
  server = std::move(*started);
  config.base_url = server->base_url();
  config.max_in_flight = config.first_window = count;
  config.connect_timeout_ms = 60000;
  connect();
  for (int i = 0; i < count; ++i)
    self->send(client, atom::complete_v, envelope{},
               request(100000, "run/g" + std::to_string(i) + ".e0"));
  auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while ((number_of("in_flight") < count || open_files() < count) &&
         std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_EQ(number_of("in_flight"), count);
  EXPECT_GE(open_files(), count);
  all_are_there.set_value();
  EXPECT_EQ(receive_good(count), count);
  EXPECT_EQ(server->requests(), static_cast<uint64_t>(count));
}

TEST_F(policy_over_http, a_storm_of_429_ends_with_every_request_answered) {
  constexpr int count = 200;
  config.max_in_flight = 64;
  start(R"({"status":429,"times":400})");
  for (int i = 0; i < count; ++i)
    self->send(client, atom::complete_v, envelope{},
               request(100000, "run/g" + std::to_string(i) + ".e0"));
  EXPECT_EQ(receive_good(count), count);
  EXPECT_EQ(server->faults(), 400u);
  EXPECT_EQ(server->requests(), count + server->faults());
}

TEST_F(policy_over_http, the_end_of_the_actor_ends_its_requests) {
  start(R"({"kind":"stall"})");
  self->send(client, atom::complete_v, envelope{}, request());
  while (server->requests() == 0) std::this_thread::yield();
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  self->receive(
      [&](const result_message& x) {
        expect_fault(x, wire::FaultClass::INFRASTRUCTURE, "cancelled");
      },
      caf::after(std::chrono::seconds{60}) >> [] { FAIL() << "no answer"; });
}

} // namespace policy_over_http_test
} // namespace kernelmill
