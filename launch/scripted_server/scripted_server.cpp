#include "launch/scripted_server/scripted_server.hpp"

#include <future>
#include <optional>
#include <thread>

#include <pthread.h>

#include "actors/listening.hpp"
#include "actors/policy_client/http/open_files.hpp"
#include "launch/scripted_server/scripted_service.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t most_connections = 65536;

std::string description(const kj::Exception& e) {
  auto text = e.getDescription();
  return {text.begin(), text.size()};
}

// Scripted faults break HTTP on purpose; KJ would report each of them on stderr.
class quiet final : public kj::ExceptionCallback {
public:
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {
    // nop
  }
};

} // namespace

class scripted_server::thread {
public:
  thread(policy_script script, scripted_server_options options, secret_ptr key)
      : script_(std::move(script)), options_(std::move(options)), key_(std::move(key)) {}

  ~thread() {
    if (stop_.get() != nullptr) stop_->fulfill();
    if (worker_.joinable()) worker_.join();
  }

  expected<void> start() {
    std::promise<expected<uint16_t>> listening;
    auto heard = listening.get_future();
    worker_ = std::thread{[this, &listening] { run(listening); }};
    auto port = heard.get();
    KM_TRY(port);
    port_ = *port;
    return {};
  }

  uint16_t port() const { return port_; }
  const std::string& host() const { return options_.host; }
  const scripted_counters& counters() const { return counters_; }
  uint64_t take_peak() { return counters_.peak.exchange(counters_.in_flight.load()); }

private:
  // `listening` lives until it is fulfilled, which happens exactly once.
  void run(std::promise<expected<uint16_t>>& listening) {
    pthread_setname_np(pthread_self(), "km-scripted");
    bool told = false;
    quiet while_it_runs;
    auto thrown = kj::runCatchingExceptions([&] { serve(listening, told); });
    KJ_IF_MAYBE (e, thrown) {
      if (!told)
        listening.set_value(
            tl::unexpected<error>{listen_error(options_.host, options_.port, description(*e))});
    }
  }

  void serve(std::promise<expected<uint16_t>>& listening, bool& told) {
    allow_open_files(open_files_for(most_connections));
    auto io = kj::setupAsyncIo();
    auto address = io.provider->getNetwork()
                       .parseAddress(options_.host.c_str(), options_.port)
                       .wait(io.waitScope);
    auto receiver = address->listen();
    kj::HttpHeaderTable::Builder builder;
    scripted_headers ids{builder};
    auto table = builder.build();
    auto& timer = io.provider->getTimer();
    scripted_service service{script_, *table, ids, timer, counters_, key_, options_.observe};
    kj::HttpServer server{timer, *table, service};
    auto stop = kj::newPromiseAndCrossThreadFulfiller<void>();
    stop_ = kj::mv(stop.fulfiller);
    told = true;
    listening.set_value(static_cast<uint16_t>(receiver->getPort()));
    server.listenHttp(*receiver).exclusiveJoin(kj::mv(stop.promise)).wait(io.waitScope);
  }

  policy_script script_;
  scripted_server_options options_;
  secret_ptr key_;
  scripted_counters counters_;
  uint16_t port_ = 0;
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop_;
  std::thread worker_;
};

scripted_server::scripted_server(std::unique_ptr<thread> impl) : thread_(std::move(impl)) {
  // nop
}

scripted_server::~scripted_server() = default;

expected<std::unique_ptr<scripted_server>> scripted_server::start(policy_script script,
                                                                  scripted_server_options options) {
  auto key = load_secret(script.require_key_env, {});
  KM_TRY(key);
  auto impl = std::make_unique<thread>(std::move(script), std::move(options), std::move(*key));
  KM_TRY(impl->start());
  return std::unique_ptr<scripted_server>{new scripted_server{std::move(impl)}};
}

expected<std::unique_ptr<scripted_server>> scripted_server::start(policy_script script,
                                                                  std::string host, uint16_t port) {
  scripted_server_options options;
  options.host = std::move(host);
  options.port = port;
  return start(std::move(script), std::move(options));
}

uint16_t scripted_server::port() const noexcept {
  return thread_->port();
}

std::string scripted_server::base_url() const {
  return "http://" + thread_->host() + ":" + std::to_string(port()) + "/v1";
}

uint64_t scripted_server::requests() const noexcept {
  return thread_->counters().requests.load();
}
uint64_t scripted_server::faults() const noexcept {
  return thread_->counters().faults.load();
}
uint64_t scripted_server::take_peak() noexcept {
  return thread_->take_peak();
}

} // namespace kernelmill
