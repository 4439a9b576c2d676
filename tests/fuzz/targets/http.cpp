// Bytes on a connection of our HTTP server, as it listens: every connection is answered or closed,
// and none ends the server.

#include <sys/socket.h>
#include <unistd.h>

#include "launch/server/http/server.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

using http::exchange_ptr;
using http::request;

http::server& server() {
  static const auto started = [] {
    auto echo = [](request r, exchange_ptr to) {
      http::response x;
      x.body = r.method + " " + r.path + " " + std::to_string(r.body.size());
      for (const auto& [name, value] : r.parts) x.body += " " + name + "=" + value;
      for (const auto& [name, value] : r.query) x.body += " " + name + "=" + value;
      to->answer(std::move(x));
    };
    auto pieces = [](const request&, exchange_ptr to) {
      to->open({});
      to->send("one");
      to->send("two");
      to->close();
    };
    http::server_options options;
    options.bounds.head_bytes = 4096;
    options.bounds.body_bytes = 8192;
    return http::server::start({{"GET", "/a", {"q", "r"}, echo},
                                {"POST", "/a/{id}", {}, echo},
                                {"DELETE", "/a/{id}", {}, echo},
                                {"GET", "/pieces", {}, pieces}},
                               options);
  }();
  promise(started.has_value(), "a server listens on the loopback interface");
  return **started;
}

std::string exchange_bytes(std::string_view bytes) {
  int fd = call_loopback(server().port());
  std::string answer;
  char part[16384];
  bool sent_all = false;
  for (;;) {
    if (!bytes.empty()) {
      auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
      if (n < 0 && errno != EAGAIN) bytes = {};
    }
    if (bytes.empty() && !sent_all) {
      sent_all = true;
      ::shutdown(fd, SHUT_WR);
    }
    pollfd entry{fd, static_cast<short>(POLLIN | (bytes.empty() ? 0 : POLLOUT)), 0};
    promise(poll_a_minute(entry), "a connection is answered or closed within a minute");
    if ((entry.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    auto n = ::recv(fd, part, sizeof part, MSG_DONTWAIT);
    if (n > 0) answer.append(part, static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EAGAIN)) break;
  }
  ::close(fd);
  return answer;
}

} // namespace

void http(std::string_view bytes) {
  auto answer = exchange_bytes(bytes);
  promise(answer.empty() || answer.starts_with("HTTP/1.1 "), "an answer is one of HTTP");
  promise(!answer.starts_with("HTTP/1.1 500"), "no client makes an error of the server's own");
}

} // namespace kernelmill::fuzz
