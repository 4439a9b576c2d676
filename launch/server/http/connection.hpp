#pragma once

// One connection's requests, from their heads to the last byte of their answers. Only
// launch/server/http includes it.

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include "launch/server/http/exchange_state.hpp"
#include "launch/server/http/request_head.hpp"
#include "launch/server/http/server.hpp"

namespace kernelmill::http {

// KJ disposes of objects by their own type and gives its interfaces no virtual destructor.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"

/// KJ 0.9 asks this as it begins an answer, and ignores a client's `Connection: close`.
struct closing final : kj::HttpServerCallbacks {
  bool next = false;
  bool shouldClose() override { return std::exchange(next, false); }
};

/// A client's socket, with what KJ 0.9 lacks: a bound on a request's head, and its form, which are
/// answered; and an end behind the last request of a client that wants its connection closed.
class client_stream final : public kj::AsyncIoStream {
public:
  /// `let_in` is called once, when a request was one that a client of ours may make.
  client_stream(kj::Own<kj::AsyncIoStream> x, uint64_t head_bytes, std::function<void()> let_in)
      : under_(kj::mv(x)), head_bytes_(head_bytes), let_in_(std::move(let_in)) {}

  /// A head has been read: what comes now is a body, or nothing.
  void begin_request() { in_head_ = false; }
  /// What comes now is a head again.
  void end_request() {
    in_head_ = true;
    head_ = {};
  }
  void let_in() {
    if (auto tell = std::exchange(let_in_, nullptr)) tell();
  }
  /// From now on there is nothing more to read.
  void end_reading() { ended_ = true; }

  kj::Promise<size_t> tryRead(void* to, size_t least, size_t most) override;
  kj::Promise<void> write(const void* from, size_t size) override {
    return under_->write(from, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return under_->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return under_->whenWriteDisconnected(); }
  void shutdownWrite() override { under_->shutdownWrite(); }
  void abortRead() override { under_->abortRead(); }
  kj::Maybe<int> getFd() const override { return under_->getFd(); }

private:
  kj::Promise<size_t> read_head(void* to, size_t most);
  kj::Promise<size_t> say_no(int status, const char* category, std::string message);

  kj::Own<kj::AsyncIoStream> under_;
  uint64_t head_bytes_;
  std::function<void()> let_in_;
  head_scan head_;
  std::string behind_; ///< what came with a head and belongs to no head that was given on
  bool in_head_ = true;
  bool ended_ = false;
};

/// What all connections of a server share; of its thread alone, but for the counter.
struct shared_parts {
  const router& routes;
  const limits& bounds;
  const kj::HttpHeaderTable& table;
  kj::UnixEventPort& events;
  kj::Timer& timer;
  uint64_t body_bytes = 0; ///< of requests that are being received
  client_gate* clients = nullptr;
  closing close = {};
};

/// A whole answer as bytes, for where KJ is not asked; the connection is to be closed behind it.
std::string last_words(const response& x);

/// `close`: the connection ends with this answer, as its client wishes.
kj::Promise<void> write_response(shared_parts& parts, kj::HttpService::Response& to, response x,
                                 bool close = false);

class connection final : public kj::HttpService {
public:
  connection(shared_parts& parts, client_stream& stream) : parts_(parts), stream_(stream) {}

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& to) override;

private:
  struct incoming;
  kj::Promise<void> take(kj::HttpMethod method, kj::StringPtr url, const kj::HttpHeaders& headers,
                         kj::AsyncInputStream& body, Response& to);
  std::optional<response> enter(const http::request& x);
  void leave();
  kj::Promise<void> read_body(incoming& x, kj::AsyncInputStream& body);
  response body_too_large() const;
  kj::Promise<void> refuse(response x, kj::AsyncInputStream& body, Response& to);
  kj::Promise<void> handle(incoming& x, Response& to);
  kj::Promise<void> respond(exchange::state& from, Response& to);
  kj::Promise<void> stream(exchange::state& from, kj::AsyncOutputStream& to,
                           exchange::state::step x);
  kj::Promise<void> until_gone();
  kj::Promise<void> talk(http::request x, const route& to, Response& response);
  kj::Promise<void> hear(kj::WebSocket& from, exchange::state& to);
  kj::Promise<void> speak(kj::WebSocket& to, exchange::state& from);

  shared_parts& parts_;
  client_stream& stream_;
  bool close_ = false;           ///< after this request
  std::optional<size_t> inside_; ///< the client that this request counts for
};

#pragma GCC diagnostic pop

} // namespace kernelmill::http
