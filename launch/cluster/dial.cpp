#include "launch/cluster/dial.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/cluster/front_door.hpp"

namespace kernelmill {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds connect_deadline{3000};
constexpr std::chrono::milliseconds hello_deadline{5000};

bool wait_for(int fd, short events, clock::time_point until) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
  pollfd wait{fd, events, 0};
  return left > 0 && ::poll(&wait, 1, static_cast<int>(left)) == 1;
}

// 0, or the errno of a connection that failed.
int connect_to(int fd, const addrinfo& to) {
  int code = ::connect(fd, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (code != EINPROGRESS) return code;
  if (!wait_for(fd, POLLOUT, clock::now() + connect_deadline)) return ETIMEDOUT;
  socklen_t size = sizeof code;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
  return code;
}

/// Nothing when the other side says nothing in time.
std::optional<tls_step> shake_hands_in_time(int fd, SSL* session) {
  auto until = clock::now() + hello_deadline;
  for (;;) {
    auto step = shake_hands(session);
    if (step == tls_step::done || step == tls_step::failed) return step;
    if (!wait_for(fd, step == tls_step::wants_read ? POLLIN : POLLOUT, until)) return std::nullopt;
  }
}

tl::unexpected<error> silent_head(const network_address& at) {
  return unreachable_head(at, "it accepts, but says nothing for " +
                                  std::to_string(hello_deadline.count() / 1000) + " s");
}

// With TLS the server's answer may still be that it does not want this client: then it hangs up,
// and CAF hears of it.
expected<link_socket> greet_over(descriptor fd, const network_address& at, const shared_tls& tls) {
  link_socket result{std::move(fd), {}};
  if (tls) {
    result.session = tls->session(result.fd.get(), false);
    if (!result.session) return unreachable_head(at, "no memory is left");
    auto step = shake_hands_in_time(result.fd.get(), result.session.get());
    if (!step) return silent_head(at);
    if (*step == tls_step::failed) return refused_by_head(at, "TLS");
  } else if (::send(result.fd.get(), plain_greeting.data(), plain_greeting.size(), MSG_NOSIGNAL) !=
             static_cast<ssize_t>(plain_greeting.size())) {
    return unreachable_head(at, std::strerror(errno)); // a fresh socket has room for a line
  }
  if (!wait_for(result.fd.get(), POLLIN, clock::now() + hello_deadline)) return silent_head(at);
  return result;
}

} // namespace

tl::unexpected<error> unreachable_head(const network_address& at, const std::string& cause) {
  return infrastructure_error("head_unreachable",
                              "failed to reach the head at " + at.text() + ": " + cause,
                              "is `kernelmill head` running there?");
}

tl::unexpected<error> refused_by_head(const network_address& at, const std::string& cause) {
  return infrastructure_error("head_refused",
                              "failed to reach the head at " + at.text() +
                                  ": it broke off the handshake (" + cause + ")",
                              "are the credentials of one and the same `kernelmill cluster "
                              "init`, and is TLS on at both ends?");
}

expected<link_socket> dial(const network_address& at, const shared_tls& tls) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (int code = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &wanted, &first);
      code != 0)
    return unreachable_head(at, ::gai_strerror(code));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found{first, ::freeaddrinfo};
  expected<link_socket> result = unreachable_head(at, "no address");
  for (auto* x = first; x != nullptr && !result; x = x->ai_next) {
    descriptor fd{::socket(x->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    int code = fd ? connect_to(fd.get(), *x) : errno;
    result = code == 0 ? greet_over(std::move(fd), at, tls)
                       : expected<link_socket>{unreachable_head(at, std::strerror(code))};
  }
  return result;
}

} // namespace kernelmill
