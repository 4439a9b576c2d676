#include "launch/server/http/server.hpp"

#include <atomic>
#include <fstream>
#include <iterator>

#include <sys/stat.h>

#include <kj/compat/tls.h>

#include "launch/config/address.hpp"
#include "launch/server/http/connection.hpp"
#include "launch/server/http/listening_thread.hpp"
#include "launch/server/http/strangers.hpp"

namespace kernelmill::http {

namespace {

constexpr uint32_t most_refused = 1024; // connections that are told so at once

std::string full_answer() {
  auto x = error_response(
      429, {fault_class::infrastructure, "busy", "too many connections", "try again later"});
  x.headers.emplace_back("Retry-After", "1");
  return last_words(x);
}

kj::Duration duration_of(std::chrono::milliseconds x) {
  return x.count() * kj::MILLISECONDS;
}

std::string description(const kj::Exception& e) {
  auto text = e.getDescription();
  return {text.begin(), text.size()};
}

std::string first_line(const std::string& x) {
  return x.substr(0, x.find('\n'));
}

expected<void> check_secret(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || (about.st_mode & S_IRWXO) == 0) return {};
  return configuration_error(
      "token_exposed", "failed to use the key " + path + ": every user of this machine may read it",
      "chmod 600 " + path +
          "; if a stranger may have read it, make new "
          "ones");
}

expected<std::string> read_pem(const std::string& path) {
  std::ifstream from{path, std::ios::binary};
  std::string result{std::istreambuf_iterator<char>{from}, {}};
  if (!from || result.empty())
    return configuration_error("io_error", "failed to read " + path,
                               "name a PEM file that this user may read");
  return result;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"

/// Answers what never reaches a route, as JSON too.
class errors final : public kj::HttpServerErrorHandler {
public:
  explicit errors(shared_parts& parts) : parts_(parts) {}

  kj::Promise<void> handleClientProtocolError(kj::HttpHeaders::ProtocolError x,
                                              kj::HttpService::Response& to) override {
    auto message = "failed to read the request: " + std::string{x.description.cStr()};
    return write_response(parts_, to,
                          error_response(static_cast<int>(x.statusCode),
                                         {fault_class::configuration, "bad_request", message, ""}));
  }

  kj::Promise<void> handleApplicationError(kj::Exception e,
                                           kj::Maybe<kj::HttpService::Response&> to) override {
    if (e.getType() == kj::Exception::Type::DISCONNECTED) return kj::READY_NOW;
    KJ_IF_MAYBE (out, to) {
      // KJ 0.9 takes a head that asks for what it has not for a failure of its own.
      if (description(e).find("unknown transfer encoding") != std::string::npos)
        return write_response(parts_, *out,
                              error_response(501, {fault_class::configuration, "bad_request",
                                                   "this transfer encoding is not known here",
                                                   "send the body chunked, or with its length"}));
      return write_response(parts_, *out,
                            error_response(500, {fault_class::infrastructure, "no_answer",
                                                 "failed to answer: " + description(e), ""}));
    }
    return kj::READY_NOW;
  }

private:
  shared_parts& parts_;
};

/// Accepts connections, as many as may be.
class door final : private kj::TaskSet::ErrorHandler {
public:
  door(kj::ConnectionReceiver& receiver, kj::HttpServer& server, shared_parts& parts,
       std::atomic<uint32_t>& open, kj::TlsContext* tls)
      : receiver_(receiver), server_(server), parts_(parts), open_(open), tls_(tls),
        strangers_(parts.bounds.strangers_of_address), tasks_(*this) {}

  kj::Promise<void> run() {
    return receiver_.accept()
        .then([this](kj::Own<kj::AsyncIoStream> x) { take(kj::mv(x)); })
        // Such as too many open files: those that are served will end.
        .catch_([this](kj::Exception&&) { return parts_.timer.afterDelay(50 * kj::MILLISECONDS); })
        .then([this] { return run(); });
  }

private:
  void take(kj::Own<kj::AsyncIoStream> x) {
    peer_origin from{};
    KJ_IF_MAYBE (fd, x->getFd()) {
      from = origin_of(*fd);
    }
    bool is_full = open_ >= parts_.bounds.connections;
    if (!strangers_.make_room(from, is_full) && is_full) return refuse(kj::mv(x));
    ++open_;
    auto end = kj::newPromiseAndFulfiller<void>();
    auto ended = kj::heap(kj::mv(end.fulfiller));
    auto& kept = **ended;
    auto stranger = strangers_.add(from, [&kept] { kept.fulfill(); });
    auto left = kj::defer([this, stranger] {
      strangers_.remove(stranger);
      --open_;
    });
    tasks_.add(greet(kj::mv(x), stranger)
                   .exclusiveJoin(kj::mv(end.promise))
                   .attach(kj::mv(left), kj::mv(ended)));
  }

  kj::Promise<void> greet(kj::Own<kj::AsyncIoStream> x, strangers::number stranger) {
    if (tls_ == nullptr) return serve(kj::mv(x), stranger);
    // Each by itself: a client with a slow handshake delays no other.
    return parts_.timer
        .timeoutAfter(duration_of(parts_.bounds.header_time), tls_->wrapServer(kj::mv(x)))
        .then(
            [this, stranger](kj::Own<kj::AsyncIoStream> y) { return serve(kj::mv(y), stranger); });
  }

  kj::Promise<void> serve(kj::Own<kj::AsyncIoStream> x, strangers::number stranger) {
    auto stream = kj::heap<client_stream>(kj::mv(x), parts_.bounds.head_bytes,
                                          [this, stranger] { strangers_.remove(stranger); });
    auto& kept = *stream;
    return server_.listenHttpCleanDrain(kept).ignoreResult().attach(kj::mv(stream));
  }

  // A client of TLS could not read the answer.
  void refuse(kj::Own<kj::AsyncIoStream> x) {
    if (tls_ != nullptr || refused_ >= most_refused) return;
    ++refused_;
    auto left = kj::defer([this] { --refused_; });
    auto& stream = *x;
    // What the client has sent is read, or closing would take the answer back.
    auto told = stream.write(full_.data(), full_.size()).then([&stream] {
      stream.shutdownWrite();
      return stream.readAllBytes(write_limit).ignoreResult();
    });
    tasks_.add(
        parts_.timer.timeoutAfter(1 * kj::SECONDS, kj::mv(told)).attach(kj::mv(left), kj::mv(x)));
  }

  void taskFailed(kj::Exception&&) override {
    // nop: a connection that broke
  }

  static constexpr uint64_t write_limit = 1 << 20;
  kj::ConnectionReceiver& receiver_;
  kj::HttpServer& server_;
  shared_parts& parts_;
  std::atomic<uint32_t>& open_;
  kj::TlsContext* tls_; ///< null: HTTP
  uint32_t refused_ = 0;
  const std::string full_ = full_answer();
  strangers strangers_;
  kj::TaskSet tasks_;
};

#pragma GCC diagnostic pop

access access_of(const server_options& x) {
  access result;
  result.token = x.token;
  if (!x.clients.empty()) result.clients = std::make_shared<client_gate>(x.clients);
  result.guard_reads = x.guard_reads;
  // Beyond the loopback interface a token is asked for, which no foreign page has.
  if (network_address{x.host, x.port}.is_loopback())
    result.hosts = {"localhost", "127.0.0.1", "::1", host_of(x.host)};
  return result;
}

} // namespace

class server::thread {
public:
  thread(std::vector<route> routes, server_options options)
      : options_(std::move(options)), router_(std::move(routes), access_of(options_)) {}

  // A watched request has its socket twice.
  expected<void> start() {
    KM_TRY(load_tls());
    return worker_.start(
        {"km-http", options_.host, options_.port, uint64_t{2} * options_.bounds.connections},
        [this](auto& io, auto& at, const auto& serve) { run(io, at, serve); });
  }

  uint16_t port() const { return worker_.port(); }
  std::string url() const {
    return (options_.key_file.empty() ? "http://" : "https://") +
           network_address{options_.host, port()}.text();
  }
  uint32_t connections() const { return open_; }

private:
  expected<void> load_tls() {
    if (options_.certificate_file.empty() && options_.key_file.empty()) return {};
    auto certificate = read_pem(options_.certificate_file);
    KM_TRY(certificate);
    KM_TRY(check_secret(options_.key_file));
    auto key = read_pem(options_.key_file);
    KM_TRY(key);
    std::string problem;
    auto thrown = kj::runCatchingExceptions([&] {
      pair_ = std::make_unique<kj::TlsKeypair>(
          kj::TlsKeypair{kj::TlsPrivateKey{kj::StringPtr{key->c_str()}},
                         kj::TlsCertificate{kj::StringPtr{certificate->c_str()}}});
      kj::TlsContext::Options wanted;
      wanted.useSystemTrustStore = false;
      wanted.defaultKeypair = *pair_;
      tls_ = std::make_unique<kj::TlsContext>(kj::mv(wanted));
    });
    KJ_IF_MAYBE (e, thrown) {
      return configuration_error("bad_certificate",
                                 "failed to use " + options_.certificate_file + " with the key " +
                                     options_.key_file + ": " + first_line(description(*e)),
                                 "both must be PEM files, and the key that of the certificate");
    }
    return {};
  }

  void run(kj::AsyncIoContext& io, kj::ConnectionReceiver& receiver,
           const listening_thread::serving& serve) {
    kj::HttpHeaderTable table;
    shared_parts parts{router_, options_.bounds,  table, io.unixEventPort, io.provider->getTimer(),
                       0,       router_.clients()};
    errors on_errors{parts};
    kj::HttpServerSettings settings;
    settings.headerTimeout = duration_of(options_.bounds.header_time);
    settings.pipelineTimeout = duration_of(options_.bounds.idle_time);
    settings.errorHandler = on_errors;
    settings.callbacks = parts.close;
    kj::HttpServer http{parts.timer, table,
                        [&parts](kj::AsyncIoStream& x) -> kj::Own<kj::HttpService> {
                          return kj::heap<connection>(parts, kj::downcast<client_stream>(x));
                        },
                        settings};
    door entrance{receiver, http, parts, open_, tls_.get()};
    serve(entrance.run());
  }

  server_options options_;
  std::unique_ptr<kj::TlsKeypair> pair_;
  std::unique_ptr<kj::TlsContext> tls_;
  router router_;
  std::atomic<uint32_t> open_ = 0;
  listening_thread worker_; ///< ends before what it uses
};

server::server(std::unique_ptr<thread> impl) : thread_(std::move(impl)) {
  // nop
}

server::~server() = default;

expected<std::unique_ptr<server>> server::start(std::vector<route> routes, server_options options) {
  if (options.token == nullptr && options.clients.empty() &&
      !network_address{options.host, options.port}.is_loopback())
    return configuration_error(
        "token_missing",
        "failed to listen on " + options.host +
            ": beyond this machine any client could send code without a token",
        "give --token-file FILE, or listen on 127.0.0.1");
  auto impl = std::make_unique<thread>(std::move(routes), std::move(options));
  KM_TRY(impl->start());
  return std::unique_ptr<server>{new server{std::move(impl)}};
}

uint16_t server::port() const noexcept {
  return thread_->port();
}
std::string server::url() const {
  return thread_->url();
}
uint32_t server::connections() const noexcept {
  return thread_->connections();
}

} // namespace kernelmill::http
