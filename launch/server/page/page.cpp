#include "launch/server/page/page.hpp"

#include <chrono>
#include <map>
#include <mutex>

#include "launch/server/page/reading_ahead.hpp"
#include "launch/server/page/routes.hpp"

namespace kernelmill::page {

namespace {

using namespace std::chrono_literals;

/// What runs said a moment ago, for all requests: a snapshot of ten thousand episodes has some
/// megabytes, and documents and events are made of the same one.
class recent_looks {
public:
  explicit recent_looks(std::function<expected<watch::snapshot>(const run_directory&)> ask)
      : ask_(std::move(ask)) {}

  expected<watch::snapshot> operator()(const run_directory& run) {
    auto asked = std::chrono::steady_clock::now();
    {
      std::lock_guard guard{mutex_};
      std::erase_if(kept_, [&](auto& x) { return asked - x.second.at > fresh_for; });
      auto i = kept_.find(run.path);
      if (i != kept_.end() && watch::is_worked_on(run)) return i->second.says;
    }
    auto says = ask_(run);
    if (!says) return says;
    std::lock_guard guard{mutex_};
    auto [i, fresh] = kept_.try_emplace(run.path);
    // An answer that was long on its way takes the place of no later one.
    if (i->second.asked <= asked) i->second = {*says, asked, std::chrono::steady_clock::now()};
    return says;
  }

private:
  struct look {
    watch::snapshot says;
    std::chrono::steady_clock::time_point asked, at;
  };
  static constexpr auto fresh_for = 100ms;

  std::function<expected<watch::snapshot>(const run_directory&)> ask_;
  std::mutex mutex_;
  std::map<std::string, look> kept_; ///< by the run's path
};

} // namespace

// In the order in which they begin; they end the other way round.
struct service::parts {
  std::shared_ptr<page_state> shared;
  std::unique_ptr<http::server> server;

  ~parts() {
    if (shared && shared->events) shared->events->finish();
    server.reset(); // no more questions
    if (shared) {
      shared->documents.reset();
      shared->events.reset();
    }
  }
};

service::service(std::unique_ptr<parts> x) : parts_(std::move(x)) {
  // nop
}

service::~service() = default;

std::string service::url() const {
  return parts_->server->url();
}

expected<std::unique_ptr<service>> service::start(options x) {
  bool local = x.listen.is_loopback();
  if (!local && x.token == nullptr)
    return configuration_error("token_missing",
                               "failed to serve the page on " + x.listen.host +
                                   ": beyond this machine it needs a token",
                               "give --token-file FILE, or listen on 127.0.0.1");
  if (!local && x.key_file.empty())
    return configuration_error("tls_missing",
                               "failed to serve the page on " + x.listen.host +
                                   ": beyond this machine it needs TLS, or the token could be read",
                               "give --tls-certificate FILE and --tls-key FILE, or listen on "
                               "127.0.0.1 and use `ssh -L`");
  http::server_options web{x.listen.host, x.listen.port, x.token, x.bounds};
  web.certificate_file = x.certificate_file;
  web.key_file = x.key_file;
  web.guard_reads = true;
  auto result = std::make_unique<parts>();
  result->shared = std::make_shared<page_state>();
  result->shared->settings = std::move(x);
  auto& world = result->shared->settings.world;
  world.ask_run = [looks = std::make_shared<recent_looks>(world.ask_run)](
                      const run_directory& run) { return (*looks)(run); };
  world = with_kept(world, result->shared->kept);
  // One: LMDB lets a process open a store only once at a time, and each document opens its own.
  constexpr unsigned makers = 1;
  result->shared->events = std::make_unique<event_stream>(result->shared->settings.world);
  result->shared->documents =
      std::make_unique<answers>(makers, [x = result->shared.get()] { return x->version(); });
  auto server = http::server::start(routes_of(result->shared), std::move(web));
  KM_TRY(server);
  if (result->shared->settings.reads_ahead)
    result->shared->documents->when_idle(reading_ahead(world, result->shared->kept));
  result->server = std::move(*server);
  return std::unique_ptr<service>{new service{std::move(result)}};
}

} // namespace kernelmill::page
