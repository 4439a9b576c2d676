#include "launch/server/scripted/scripted_server.hpp"

#include "launch/server/http/listening_thread.hpp"
#include "launch/server/scripted/scripted_service.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t most_connections = 65536;

} // namespace

class scripted_server::thread {
public:
  thread(policy_script script, scripted_server_options options, secret_ptr key)
      : script_(std::move(script)), options_(std::move(options)), key_(std::move(key)) {}

  expected<void> start() {
    return worker_.start({"km-scripted", options_.host, options_.port, most_connections},
                         [this](auto& io, auto& at, const auto& serve) { run(io, at, serve); });
  }

  uint16_t port() const { return worker_.port(); }
  const std::string& host() const { return options_.host; }
  const scripted_counters& counters() const { return counters_; }
  uint64_t take_peak() { return counters_.peak.exchange(counters_.in_flight.load()); }

private:
  void run(kj::AsyncIoContext& io, kj::ConnectionReceiver& receiver,
           const http::listening_thread::serving& serve) {
    kj::HttpHeaderTable::Builder builder;
    scripted_headers ids{builder};
    auto table = builder.build();
    auto& timer = io.provider->getTimer();
    scripted_service service{script_, *table, ids, timer, counters_, key_, options_.observe};
    kj::HttpServer server{timer, *table, service};
    serve(server.listenHttp(receiver));
  }

  policy_script script_;
  scripted_server_options options_;
  secret_ptr key_;
  scripted_counters counters_;
  http::listening_thread worker_; ///< ends before what it uses
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
