#include "launch/server/http/connection.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>

#include <kj/debug.h>

namespace kernelmill::http {

namespace {

constexpr size_t write_bytes = 64 << 10;
constexpr size_t read_bytes = 64 << 10;
constexpr size_t head_piece = 4 << 10; // each silent connection has so much

// What is read of a body that was refused: most clients hear the answer only when all is sent.
constexpr uint64_t drained_bytes = 32 << 20;
constexpr auto drain_time = 2 * kj::SECONDS;

kj::Duration duration_of(std::chrono::milliseconds x) {
  return x.count() * kj::MILLISECONDS;
}

std::string text_of(kj::StringPtr x) {
  return {x.begin(), x.size()};
}

response refusal(int status, const char* category, std::string message, std::string hint = {}) {
  return error_response(
      status, {fault_class::configuration, category, std::move(message), std::move(hint)});
}

/// Writes a text that the caller keeps, in pieces that each must be taken in time.
kj::Promise<void> write_all(const shared_parts& parts, kj::AsyncOutputStream& to,
                            const std::string& text, size_t from = 0) {
  if (from >= text.size()) return kj::READY_NOW;
  auto size = std::min(write_bytes, text.size() - from);
  return parts.timer
      .timeoutAfter(duration_of(parts.bounds.write_time), to.write(text.data() + from, size))
      .then([&parts, &to, &text, from, size] { return write_all(parts, to, text, from + size); });
}

kj::Promise<void> drain(kj::AsyncInputStream& from, uint64_t most) {
  auto part = kj::heapArray<kj::byte>(read_bytes);
  auto reading = from.tryRead(part.begin(), 1, part.size());
  return reading.attach(kj::mv(part)).then([&from, most](size_t n) -> kj::Promise<void> {
    if (n == 0 || n >= most) return kj::READY_NOW;
    return drain(from, most - n);
  });
}

void set_headers(kj::HttpHeaders& into, const response& x) {
  into.set(kj::HttpHeaderId::CONTENT_TYPE, kj::StringPtr{x.type.c_str()});
  auto has = [&](const char* name) {
    return std::any_of(x.headers.begin(), x.headers.end(),
                       [&](auto& h) { return h.first == name; });
  };
  if (!has("Cache-Control")) into.add("Cache-Control", "no-store");
  into.add("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : x.headers)
    into.add(kj::StringPtr{name.c_str()}, kj::StringPtr{value.c_str()});
}

} // namespace

namespace {

/// Until the handler has said something.
kj::Promise<void> until_ready(exchange::state& from) {
  auto pair = kj::newPromiseAndCrossThreadFulfiller<void>();
  auto fulfiller =
      std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<void>>>(kj::mv(pair.fulfiller));
  if (!from.wake_by([fulfiller] { (*fulfiller)->fulfill(); })) return kj::READY_NOW;
  return kj::mv(pair.promise);
}

} // namespace

/// A request on its way in.
struct connection::incoming {
  http::request request;
  const route* to = nullptr;
  std::optional<response> refused;
  uint64_t held = 0; ///< bytes counted in shared_parts::body_bytes
  std::string buffer;
};

kj::Promise<void> write_response(shared_parts& parts, kj::HttpService::Response& to, response x,
                                 bool close) {
  auto kept = kj::heap<response>(std::move(x)); // where the headers' texts stay
  kj::HttpHeaders headers{parts.table};
  set_headers(headers, *kept);
  parts.close.next = close;
  auto out = to.send(static_cast<kj::uint>(kept->status), reason_of(kept->status), headers,
                     kept->body.size());
  auto& body = kept->body;
  auto written = write_all(parts, *out, body);
  return written.attach(kj::mv(out), kj::mv(kept));
}

std::string last_words(const response& x) {
  auto result = "HTTP/1.1 " + std::to_string(x.status) + " " + reason_of(x.status) +
                "\r\nContent-Type: " + x.type +
                "\r\nConnection: close\r\nContent-Length: " + std::to_string(x.body.size()) +
                "\r\n";
  for (const auto& [name, value] : x.headers) result += name + ": " + value + "\r\n";
  return result + "\r\n" + x.body;
}

kj::Promise<size_t> client_stream::say_no(int status, const char* category, std::string message) {
  ended_ = true; // no other writer: the answers before are out
  auto text = kj::heap<std::string>(last_words(refusal(status, category, std::move(message))));
  auto& kept = *text;
  return under_->write(kept.data(), kept.size()).attach(kj::mv(text)).then([] {
    return size_t{0};
  });
}

kj::Promise<size_t> client_stream::tryRead(void* to, size_t least, size_t most) {
  if (ended_) return size_t{0};
  if (in_head_ && !head_.is_whole()) return read_head(to, most);
  if (behind_.empty()) return under_->tryRead(to, least, most);
  auto given = std::min(most, behind_.size());
  std::memcpy(to, behind_.data(), given);
  behind_.erase(0, given);
  if (given >= least) return given;
  return under_->tryRead(static_cast<char*>(to) + given, least - given, most - given)
      .then([given](size_t n) { return given + n; });
}

// KJ gets no byte behind a head before that is over, so what it reads next is where we know. The
// end of a head is given on once all of it is known to be sound.
kj::Promise<size_t> client_stream::read_head(void* to, size_t most) {
  if (head_.size() >= head_bytes_)
    return say_no(431, "head_too_large",
                  "the request's head is above " + std::to_string(head_bytes_) + " bytes");
  if (behind_.empty()) {
    behind_.resize(head_piece);
    return under_->tryRead(behind_.data(), 1, behind_.size())
        .then([this, to, most](size_t n) -> kj::Promise<size_t> {
          behind_.resize(n);
          if (n == 0) return size_t{0};
          return read_head(to, most);
        });
  }
  auto left = head_bytes_ - head_.size();
  auto taken = head_.take(std::string_view{behind_}.substr(0, std::min<size_t>(most, left)));
  if (auto fault = head_.fault(); !fault.empty())
    return say_no(400, "bad_request", "failed to read the request: " + fault);
  std::memcpy(to, behind_.data(), taken);
  behind_.erase(0, taken);
  return taken;
}

kj::Promise<void> connection::request(kj::HttpMethod method, kj::StringPtr url,
                                      const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                                      Response& to) {
  stream_.begin_request();
  return take(method, url, headers, body, to).attach(kj::defer([this] {
    leave();
    stream_.end_request();
  }));
}

// One request after the other: a connection is in for one client at most.
std::optional<response> connection::enter(const http::request& x) {
  if (!x.client_number || parts_.clients == nullptr) return std::nullopt;
  auto no = parts_.clients->enter(*x.client_number, std::chrono::steady_clock::now());
  if (!no) {
    inside_ = x.client_number;
    return std::nullopt;
  }
  auto result = error_response(429, {fault_class::infrastructure, "quota", no->why,
                                     "ask again after the time that Retry-After says"});
  result.headers.emplace_back("Retry-After", std::to_string(no->after_s));
  return result;
}

void connection::leave() {
  if (inside_) parts_.clients->leave(*inside_);
  inside_.reset();
}

kj::Promise<void> connection::take(kj::HttpMethod method, kj::StringPtr url,
                                   const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                                   Response& to) {
  // `url` and `headers` are gone once the body is read.
  auto x = kj::heap<incoming>();
  x->request.method = kj::str(method).cStr();
  headers.forEach([&](kj::StringPtr name, kj::StringPtr value) {
    auto key = text_of(name);
    for (auto& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    auto [at, is_new] = x->request.headers.emplace(std::move(key), text_of(value));
    if (!is_new) at->second += ", " + text_of(value);
  });
  // KJ reads ahead in a chunked body: what stands behind that may be a head already.
  close_ = x->request.header("connection").find("close") != std::string::npos ||
           !x->request.header("transfer-encoding").empty();
  auto chosen = parts_.routes.choose(x->request, text_of(url));
  if (auto* no = std::get_if<response>(&chosen)) return refuse(std::move(*no), body, to);
  x->to = std::get<const route*>(chosen);
  stream_.let_in();
  if (auto no = enter(x->request)) return refuse(std::move(*no), body, to);
  if (x->to->socket) return talk(std::move(x->request), *x->to, to);
  KJ_IF_MAYBE (size, body.tryGetLength()) {
    if (*size > parts_.bounds.body_bytes) return refuse(body_too_large(), body, to);
  }
  auto& kept = *x;
  auto release = kj::defer([this, &kept] { parts_.body_bytes -= kept.held; });
  return parts_.timer.timeoutAfter(duration_of(parts_.bounds.body_time), read_body(kept, body))
      .catch_([this, &kept](kj::Exception&& e) {
        if (e.getType() == kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(e));
        bool late = e.getType() == kj::Exception::Type::OVERLOADED;
        kept.refused =
            late ? refusal(408, "body_too_slow", "the body did not come in time")
                 : refusal(400, "bad_request", "the body is not encoded as its head says");
        close_ = close_ || !late; // the start of the next request is unknown
      })
      .then([this, &kept, &body, &to] {
        if (kept.refused) return refuse(std::move(*kept.refused), body, to);
        return handle(kept, to);
      })
      .attach(kj::mv(x), kj::mv(release)); // the last is destroyed first, and looks at the first
}

response connection::body_too_large() const {
  return refusal(413, "body_too_large",
                 "the body is above " + std::to_string(parts_.bounds.body_bytes) + " bytes");
}

kj::Promise<void> connection::refuse(response x, kj::AsyncInputStream& body, Response& to) {
  return write_response(parts_, to, std::move(x), close_).then([this, &body] {
    auto drained = parts_.timer.timeoutAfter(drain_time, drain(body, drained_bytes));
    return drained.catch_([](kj::Exception&&) {}).then([this] {
      if (close_) stream_.end_reading();
    });
  });
}

kj::Promise<void> connection::read_body(incoming& x, kj::AsyncInputStream& body) {
  x.buffer.resize(read_bytes);
  return body.tryRead(x.buffer.data(), 1, x.buffer.size())
      .then([this, &x, &body](size_t n) -> kj::Promise<void> {
        if (n == 0) return kj::READY_NOW;
        if (x.request.body.size() + n > parts_.bounds.body_bytes) {
          x.refused = body_too_large();
          return kj::READY_NOW;
        }
        if (parts_.body_bytes + n > parts_.bounds.bodies_bytes) {
          x.refused = refusal(429, "busy", "too many bodies are being received", "try again later");
          x.refused->headers.emplace_back("Retry-After", "1");
          return kj::READY_NOW;
        }
        x.held += n;
        parts_.body_bytes += n;
        x.request.body.append(x.buffer.data(), n);
        return read_body(x, body);
      });
}

kj::Promise<void> connection::handle(incoming& x, Response& to) {
  x.buffer = {};
  parts_.body_bytes -= x.held; // from here on it is the handler's
  x.held = 0;
  if (close_) stream_.end_reading();
  auto state = std::make_shared<exchange::state>(parts_.bounds.stream_bytes);
  auto leave = kj::defer([state] { state->leave(); }); // also when KJ drops this promise
  x.to->handle(std::move(x.request), std::make_shared<exchange>(state));
  auto answered = respond(*state, to).then([state] { state->finish(); });
  return answered.exclusiveJoin(until_gone()).attach(kj::mv(leave));
}

kj::Promise<void> connection::respond(exchange::state& from, Response& to) {
  return until_ready(from).then([this, &from, &to]() -> kj::Promise<void> {
    auto x = from.next();
    if (!x.head) return respond(from, to);
    if (x.whole) return write_response(parts_, to, std::move(*x.head), close_);
    kj::HttpHeaders headers{parts_.table};
    set_headers(headers, *x.head);
    auto status = x.head->status;
    parts_.close.next = close_;
    auto out = to.send(static_cast<kj::uint>(status), reason_of(status), headers);
    auto& stream_to = *out;
    return stream(from, stream_to, std::move(x)).attach(kj::mv(out));
  });
}

kj::Promise<void> connection::stream(exchange::state& from, kj::AsyncOutputStream& to,
                                     exchange::state::step x) {
  if (x.cut) return KJ_EXCEPTION(DISCONNECTED, "the client does not read");
  auto text = kj::heap<std::string>();
  for (auto& piece : x.pieces) *text += piece;
  auto& kept = *text;
  auto end = x.end;
  return write_all(parts_, to, kept).attach(kj::mv(text)).then([this, &from, &to, end] {
    if (end) return kj::Promise<void>{kj::READY_NOW};
    return until_ready(from).then([this, &from, &to] { return stream(from, to, from.next()); });
  });
}

// A client that leaves, or the handler's end, ends both directions. KJ answers pings itself.
kj::Promise<void> connection::talk(http::request x, const route& to, Response& response) {
  auto socket = response.acceptWebSocket(kj::HttpHeaders{parts_.table});
  auto state = std::make_shared<exchange::state>(parts_.bounds.stream_bytes);
  state->open({});
  auto leave = kj::defer([state] { state->leave(); });
  to.handle(std::move(x), std::make_shared<exchange>(state));
  auto& both = *socket;
  auto heard = hear(both, *state).then([state]() -> kj::Promise<void> {
    state->close(); // then the other direction ends
    return kj::NEVER_DONE;
  });
  return speak(both, *state).exclusiveJoin(kj::mv(heard)).attach(kj::mv(socket), kj::mv(leave));
}

kj::Promise<void> connection::hear(kj::WebSocket& from, exchange::state& to) {
  return parts_.timer
      .timeoutAfter(duration_of(parts_.bounds.socket_time), from.receive(parts_.bounds.body_bytes))
      .then([this, &from, &to](kj::WebSocket::Message x) -> kj::Promise<void> {
        if (x.is<kj::WebSocket::Close>()) return kj::READY_NOW;
        if (x.is<kj::String>())
          to.deliver(text_of(x.get<kj::String>()));
        else
          to.deliver({x.get<kj::Array<kj::byte>>().asChars().begin(),
                      x.get<kj::Array<kj::byte>>().size()});
        return hear(from, to);
      });
}

kj::Promise<void> connection::speak(kj::WebSocket& to, exchange::state& from) {
  return until_ready(from).then([this, &to, &from]() -> kj::Promise<void> {
    auto x = from.next();
    if (x.cut) return KJ_EXCEPTION(DISCONNECTED, "the client does not read");
    auto patience = duration_of(parts_.bounds.write_time);
    kj::Promise<void> sent = kj::READY_NOW;
    for (auto& piece : x.pieces) {
      auto text = kj::heapString(piece.data(), piece.size());
      sent = sent.then([this, &to, patience, text = kj::mv(text)]() mutable {
        auto sending = to.send(text.asArray());
        return parts_.timer.timeoutAfter(patience, sending.attach(kj::mv(text)));
      });
    }
    return sent.then([this, &to, &from, patience, end = x.end] {
      if (!end) return speak(to, from);
      return parts_.timer.timeoutAfter(patience, to.close(1000, ""_kj));
    });
  });
}

// KJ notices a client that leaves only when both directions are closed, which for TCP takes a write
// of ours. One that has closed its own side waits for no answer.
kj::Promise<void> connection::until_gone() {
  int socket = -1;
  KJ_IF_MAYBE (fd, stream_.getFd()) {
    socket = *fd;
  }
  // KJ watches the socket already, and epoll takes a descriptor only once.
  int copy = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return kj::NEVER_DONE;
  struct watch {
    watch(kj::UnixEventPort& events, int fd)
        : socket(fd), observer(events, fd, kj::UnixEventPort::FdObserver::OBSERVE_READ) {}
    kj::Promise<void> wait() {
      char byte = 0;
      auto n = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      bool at_end = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
      KJ_IF_MAYBE (end, observer.atEndHint()) {
        at_end = at_end || *end; // behind a request that came early
      }
      if (at_end) return KJ_EXCEPTION(DISCONNECTED, "the client has left");
      return observer.whenBecomesReadable().then([this] { return wait(); });
    }
    kj::AutoCloseFd socket;
    kj::UnixEventPort::FdObserver observer; // before the descriptor is closed
  };
  auto x = kj::heap<watch>(parts_.events, copy);
  auto waiting = x->wait();
  return waiting.attach(kj::mv(x));
}

} // namespace kernelmill::http
