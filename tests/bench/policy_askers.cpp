#include "tests/bench/policy_askers.hpp"

#include <cstdio>
#include <cstdlib>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http/http_client.hpp"
#include "actors/policy_client/http_policy_client.hpp"

namespace kernelmill::bench {
namespace {

constexpr uint32_t timeout_ms = 300'000;

Message<wire::CompletionRequest> request_of(const std::string& prompt, uint64_t number) {
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    x.setSession("bench/g" + std::to_string(number) + ".e0");
    x.setDeadlineMs(timeout_ms);
    auto messages = x.initMessages(2);
    messages[0].setRole("system");
    messages[0].setContent("You write kernels.");
    messages[1].setRole("user");
    messages[1].setContent(prompt);
  });
}

class over_http final : public askers {
public:
  over_http(const std::string& url, const std::string& prompt, uint32_t count)
      : url_(url + "/chat/completions"), body_(request_body(prompt)) {
    http_client_options options;
    options.kept_connections = count;
    auto client = http_client::start(options);
    if (!client) {
      std::fprintf(stderr, "policy_load: %s\n", client.error().message.c_str());
      std::exit(1);
    }
    client_ = std::move(*client);
  }

  void ask() override {
    auto number = next_.fetch_add(1);
    http_request request;
    request.url = url_;
    auto session = "bench/g" + std::to_string(number) + ".e0";
    request.headers = attempt_headers(session, attempt_id(session, 0, 1, {}), envelope{});
    request.body = body_;
    request.timeout_ms = timeout_ms;
    client_->submit(std::move(request), [this](const http_response& x) { answered(x); });
  }

private:
  void answered(const http_response& x) {
    auto good = x.fault == transport_fault::none && x.status == 200 && parse_chat_response(x.body);
    if (!good && sum().failed.load() == 0)
      std::fprintf(stderr, "policy_load: first failure: %s %s, status %ld\n",
                   std::string{to_string(x.fault)}.c_str(), x.detail.c_str(), x.status);
    auto again = sum().again.load();
    ++(good ? sum().answered : sum().failed);
    if (again) ask();
  }

  std::string url_;
  std::string body_;
  std::atomic<uint64_t> next_{0};
  std::unique_ptr<http_client> client_;
};

// Asks on behalf of all askers: an episode each would measure CAF.
class over_actor final : public askers {
public:
  over_actor(const std::string& url, std::string prompt, uint32_t count)
      : prompt_(std::move(prompt)), system_(configuration_) {
    policy_config config;
    config.base_url = url;
    config.model = "scripted";
    config.max_in_flight = config.first_window = count;
    client_ = system_.spawn(http_policy_client, config);
    asker_ = system_.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](uint64_t number) { send(self, number); }};
    });
  }

  void ask() override { caf::anon_send(asker_, next_.fetch_add(1)); }

private:
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.policy", caf::atom("sharing"));
      set("scheduler.max-threads", size_t{1});
      set("scheduler.max-throughput", size_t{100});
    }
  };

  void send(caf::event_based_actor* self, uint64_t number) {
    // As episodes do, without a timeout of CAF's: docs/decisions/0006.
    self->request(client_, caf::infinite, atom::complete_v, envelope{1, 1, number, 0},
                  request_of(prompt_, number))
        .then(
            [this, self](const Message<wire::CompletionResult>& x) {
              auto view = x.open();
              auto good = view->getText().size() + 100 > answer_bytes;
              if (!good && sum().failed.load() == 0)
                std::fprintf(stderr, "policy_load: first failure: %s\n",
                             view->getFault().getMessage().cStr());
              ended(self, good);
            },
            [this, self](const caf::error&) { ended(self, false); });
  }

  void ended(caf::event_based_actor* self, bool good) {
    auto again = sum().again.load();
    ++(good ? sum().answered : sum().failed);
    if (again) send(self, next_.fetch_add(1));
  }

  std::string prompt_;
  std::atomic<uint64_t> next_{0};
  configuration configuration_;
  caf::actor_system system_;
  policy_client_actor client_;
  caf::actor asker_;
};

} // namespace

std::string request_body(const std::string& prompt) {
  auto request = request_of(prompt, 0);
  chat_options options;
  options.model = "scripted";
  return chat_body(*request.open(), options);
}

std::unique_ptr<askers> http_askers(const std::string& url, const std::string& prompt,
                                    uint32_t count) {
  return std::make_unique<over_http>(url, prompt, count);
}

std::unique_ptr<askers> actor_askers(const std::string& url, const std::string& prompt,
                                     uint32_t count) {
  return std::make_unique<over_actor>(url, prompt, count);
}

} // namespace kernelmill::bench
