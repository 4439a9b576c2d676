// What tests/fault/policy_crowd.py starts: many askers of many policy servers, in one process.
//   policy_crowd_client each|pool REQUESTS DEADLINE_MS ANSWER_BYTES       addresses come on stdin
// `each` asks every server REQUESTS times through a client of its own, all at once; `pool` puts one
// pool before them and asks it REQUESTS times for each server. Prints a line of JSON an answer,
//   {"session", "text", "class", "category", "attempts"}
// and at last {"rss_kib": the most memory that the process had, "before_kib": before it asked}.

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <sys/resource.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http/open_files.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "messages/base/json_value.hpp"

using namespace kernelmill;

namespace {

constexpr size_t prompt_bytes = 7800;

struct settings {
  bool pool = false;
  uint32_t requests = 0; // of each server
  uint32_t deadline_ms = 0;
  uint64_t answer_bytes = 0;
  std::vector<std::string> urls;
};

struct caf_configuration : caf::actor_system_config {
  caf_configuration() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    set("scheduler.max-threads", size_t{2});
  }
};

policy_config config_of(const settings& x, const std::string& url) {
  policy_config result;
  result.base_url = url;
  result.model = "crowd";
  result.max_in_flight = result.first_window = x.requests;
  result.max_response_bytes = x.answer_bytes;
  result.first_contact_ms = 0; // a server that is broken is not a wrong address
  return result;
}

Message<wire::CompletionRequest> request_of(const settings& x, const std::string& session) {
  static const std::string prompt(prompt_bytes, 'p');
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder b) {
    b.setSession(session);
    b.setDeadlineMs(x.deadline_ms);
    auto messages = b.initMessages(1);
    messages[0].setRole("user");
    messages[0].setContent(prompt);
  });
}

void print(const std::string& session, wire::CompletionResult::Reader x) {
  auto fault = x.getFault();
  bool failed = fault.getClass() != wire::FaultClass::NONE;
  nlohmann::ordered_json line = {{"session", session},
                                 {"text", x.getText().cStr()},
                                 {"class", failed ? static_cast<int>(fault.getClass()) : 0},
                                 {"category", fault.getCategory().cStr()},
                                 {"message", fault.getMessage().cStr()},
                                 {"attempts", x.getAttempts()}};
  std::puts(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

long most_memory_kib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

/// Asks all at once and waits for all answers.
class crowd {
public:
  explicit crowd(settings x) : settings_(std::move(x)), system_(configuration_) {
    open_clients();
    left_ = settings_.urls.size() * settings_.requests;
  }

  void run() {
    auto before = most_memory_kib();
    system_.spawn([this](caf::event_based_actor* self) {
      for (size_t i = 0; i < settings_.urls.size(); ++i)
        for (uint32_t k = 0; k < settings_.requests; ++k) ask(self, i, k);
    });
    std::unique_lock lock{mutex_};
    all_answered_.wait(lock, [this] { return left_ == 0; });
    std::printf("{\"before_kib\": %ld, \"rss_kib\": %ld}\n", before, most_memory_kib());
    std::fflush(stdout);
    std::_Exit(0); // hundreds of clients end with the process
  }

private:
  void open_clients() {
    if (!settings_.pool) {
      for (const auto& url : settings_.urls)
        clients_.push_back(system_.spawn(http_policy_client, config_of(settings_, url)));
      return;
    }
    pool_ = system_.spawn(policy_pool, [this](policy_config x) -> policy_client_actor {
      return system_.spawn(http_policy_client, config_of(settings_, x.base_url));
    });
    caf::scoped_actor self{system_};
    for (size_t i = 0; i < settings_.urls.size(); ++i) {
      auto server = build<wire::PolicyServer>([&](wire::PolicyServer::Builder b) {
        b.setName("s" + std::to_string(i));
        b.setUrl(settings_.urls[i]);
        b.setKind("openai");
        b.setModel("crowd");
        b.setMaxInFlight(settings_.requests);
      });
      self->request(pool_, std::chrono::seconds{60}, atom::attach_v, server)
          .receive([] {},
                   [&](caf::error& why) {
                     std::fprintf(stderr, "policy_crowd_client: %s\n", system_.render(why).c_str());
                     std::exit(1);
                   });
    }
  }

  void ask(caf::event_based_actor* self, size_t server, uint32_t number) {
    auto session = "crowd/g" + std::to_string(server) + ".e" + std::to_string(number);
    envelope where{1, 1, server * settings_.requests + number, 0};
    auto done = [this, session](const Message<wire::CompletionResult>& x) {
      answered(session, *x.open());
    };
    auto lost = [this, session](const caf::error&) { answered(session, *none_.open()); };
    auto request = request_of(settings_, session);
    if (settings_.pool)
      self->request(pool_, caf::infinite, atom::complete_v, where, request).then(done, lost);
    else
      self->request(clients_[server], caf::infinite, atom::complete_v, where, request)
          .then(done, lost);
  }

  void answered(const std::string& session, wire::CompletionResult::Reader x) {
    std::lock_guard lock{mutex_};
    print(session, x);
    if (--left_ == 0) all_answered_.notify_all();
  }

  settings settings_;
  caf_configuration configuration_;
  caf::actor_system system_;
  std::vector<policy_client_actor> clients_;
  policy_pool_actor pool_;
  Message<wire::CompletionResult> none_;
  std::mutex mutex_;
  std::condition_variable all_answered_;
  size_t left_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: policy_crowd_client each|pool REQUESTS DEADLINE_MS ANSWER_BYTES\n", stderr);
    return 2;
  }
  settings x;
  x.pool = std::string{argv[1]} == "pool";
  x.requests = static_cast<uint32_t>(std::atoi(argv[2]));
  x.deadline_ms = static_cast<uint32_t>(std::atoi(argv[3]));
  x.answer_bytes = static_cast<uint64_t>(std::atoll(argv[4]));
  for (std::string url; std::getline(std::cin, url);) x.urls.push_back(url);
  allow_open_files(open_files_for(x.urls.size() * x.requests));
  crowd{std::move(x)}.run();
}
