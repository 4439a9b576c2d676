// The policy client's window, on virtual time, against a transport that the test plays.

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

#include "actors/policy_client/http_policy_client.hpp"

namespace kernelmill {
namespace window_over_time_test {

using namespace std::chrono_literals;

// Answers when the test says so; GETs at once.
class held_transport final : public http_transport {
public:
  uint64_t submit(http_request request, callback done) override {
    if (request.post) {
      waiting.emplace_back(next_, std::move(done));
      return next_++;
    }
    gets.push_back(request.url);
    http_response response;
    response.status = metrics.empty() || !request.url.ends_with("/metrics") ? 404 : 200;
    response.body = metrics;
    done(std::move(response));
    return next_++;
  }

  void cancel(uint64_t id) override {
    std::erase_if(waiting, [id](const auto& x) { return x.first == id; });
  }

  void answer_all(long status) {
    auto taken = std::move(waiting);
    waiting.clear();
    for (auto& [id, done] : taken) {
      http_response response;
      response.status = status;
      if (status == 200)
        response.body = R"({"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]})";
      done(std::move(response));
    }
  }

  std::vector<std::pair<uint64_t, callback>> waiting;
  std::vector<std::string> gets;
  std::string metrics;

private:
  uint64_t next_ = 1;
};

struct policy_client_window : testing::Test {
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.policy", caf::atom("testing"));
    }
  };

  policy_client_window() {
    scheduler.clock().current_time += 1h;
    config.base_url = "http://server:1/v1";
    config.model = "m";
    config.max_in_flight = 1000;
    config.first_window = 8;
    config.transport = transport;
  }

  ~policy_client_window() override {
    caf::anon_send_exit(client, caf::exit_reason::kill);
    run();
  }

  void spawn() { client = system.spawn(http_policy_client, config); }

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

  void ask(int count) {
    for (int i = 0; i < count; ++i)
      self->send(client, atom::complete_v, envelope{},
                 build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
                   x.setSession("run/g" + std::to_string(i) + ".e0");
                   x.initMessages(1)[0].setRole("user");
                 }));
    run();
  }

  void answer(long status) {
    transport->answer_all(status);
    run();
  }

  Message<wire::Snapshot> status() {
    auto handle = self->request(client, caf::infinite, atom::status_v);
    run();
    Message<wire::Snapshot> result;
    handle.receive([&](const Message<wire::Snapshot>& x) { result = x; },
                   [](caf::error&) { FAIL(); });
    return result;
  }

  double number(const char* name) {
    auto snapshot = status();
    for (auto x : snapshot.open()->getNumbers())
      if (x.getName() == name) return x.getValue();
    return -1;
  }

  std::string detail() { return status().open()->getDetail().cStr(); }

  configuration cfg;
  caf::actor_system system{cfg};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  caf::scoped_actor self{system, true};
  std::shared_ptr<held_transport> transport = std::make_shared<held_transport>();
  policy_config config;
  policy_client_actor client;
};

TEST_F(policy_client_window, doubles_while_a_server_answers) {
  spawn();
  ask(100);
  EXPECT_EQ(transport->waiting.size(), 8u);
  answer(200);
  EXPECT_EQ(transport->waiting.size(), 16u);
  answer(200);
  EXPECT_EQ(transport->waiting.size(), 32u);
  EXPECT_EQ(number("window"), 32);
  EXPECT_EQ(number("window_limit"), 1000);
  EXPECT_NE(detail().find("window of 32 (growing)"), std::string::npos) << detail();
}

TEST_F(policy_client_window, halves_once_for_a_burst_of_refusals) {
  config.breaker_threshold = 0;
  config.first_window = 64;
  for (long refusal : {429, 503}) {
    spawn();
    ask(64);
    answer(refusal);
    EXPECT_EQ(number("window"), 32);
    advance(2s);
    EXPECT_LE(transport->waiting.size(), 32u);
    answer(refusal);
    EXPECT_EQ(number("window"), 16);
    EXPECT_NE(detail().find("halved 2 times"), std::string::npos) << detail();
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
    run();
    transport->waiting.clear();
  }
}

TEST_F(policy_client_window, every_request_is_answered_after_a_storm_of_refusals) {
  config.first_window = 64;
  spawn();
  ask(300);
  for (int i = 0; i < 20; ++i) {
    answer(429);
    advance(1s);
  }
  EXPECT_LE(number("window"), 8);
  for (int i = 0; i < 400 && number("completed") < 300; ++i) {
    answer(200);
    advance(1s);
  }
  EXPECT_EQ(number("completed"), 300);
  EXPECT_EQ(number("failed"), 0);
}

TEST_F(policy_client_window, stays_where_the_servers_queue_grows) {
  config.kind = server_kind::vllm;
  transport->metrics = "vllm:num_requests_running 8\nvllm:num_requests_waiting 7\n";
  spawn();
  ask(100);
  answer(200);
  EXPECT_EQ(number("window"), 16);
  advance(500ms);
  EXPECT_EQ(transport->gets.back(), "http://server:1/metrics");
  EXPECT_NE(detail().find("held: 7 requests wait in the server"), std::string::npos) << detail();
  answer(200);
  EXPECT_EQ(number("window"), 16);
  transport->metrics = "vllm:num_requests_running 16\nvllm:num_requests_waiting 0\n";
  advance(4s);
  answer(200);
  EXPECT_EQ(number("window"), 32);
}

TEST_F(policy_client_window, a_server_without_metrics_is_rarely_asked_for_them) {
  config.kind = server_kind::sglang;
  spawn();
  ask(100);
  answer(200);
  advance(50s);
  EXPECT_EQ(std::count(transport->gets.begin(), transport->gets.end(), "http://server:1/metrics"),
            1);
  EXPECT_EQ(number("window"), 16);
}

TEST_F(policy_client_window, a_server_of_unknown_kind_is_not_asked_for_metrics) {
  spawn();
  ask(100);
  answer(200);
  advance(20s);
  EXPECT_EQ(std::count(transport->gets.begin(), transport->gets.end(), "http://server:1/metrics"),
            0);
}

} // namespace window_over_time_test
} // namespace kernelmill
