#include "launch/cluster/head_probe.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds connect_deadline{3000};
constexpr std::chrono::milliseconds greeting_deadline{5000};

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

// Whether the other side says something, whatever it is: a head greets first, with TLS it answers.
bool says_something(int fd, bool tls) {
  if (!tls) return wait_for(fd, POLLIN, clock::now() + greeting_deadline);
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_client_method()),
                                                            SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> session{context ? SSL_new(context.get()) : nullptr,
                                                    SSL_free};
  if (!session || SSL_set_fd(session.get(), fd) != 1) return true; // CAF will say what is wrong
  bool greeted = SSL_get_error(session.get(), SSL_connect(session.get())) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  return !greeted || wait_for(fd, POLLIN, clock::now() + greeting_deadline);
}

} // namespace

tl::unexpected<error> unreachable_head(const network_address& at, const std::string& cause) {
  return infrastructure_error("head_unreachable",
                              "failed to reach the head at " + at.text() + ": " + cause,
                              "is `kernelmill head` running there?");
}

expected<void> probe_head(const network_address& at, bool tls) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (int code = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &wanted, &first);
      code != 0)
    return unreachable_head(at, ::gai_strerror(code));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found{first, ::freeaddrinfo};
  std::string cause = "no address";
  for (auto* x = first; x != nullptr; x = x->ai_next) {
    descriptor fd{::socket(x->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!fd) continue;
    if (int code = connect_to(fd.get(), *x); code != 0)
      cause = std::strerror(code);
    else if (says_something(fd.get(), tls))
      return {};
    else
      cause = "it accepts, but says nothing for " +
              std::to_string(greeting_deadline.count() / 1000) + " s";
  }
  return unreachable_head(at, cause);
}

} // namespace kernelmill
