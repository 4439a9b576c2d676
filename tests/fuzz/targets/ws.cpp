// Frames of a client of OpenEnv's WebSocket, as they come behind its handshake: the connection is
// answered or closed, and nothing ends the server. There is no service, so no step is judged.

#include <cerrno>
#include <chrono>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

#include "launch/server/api/evaluation_api.hpp"
#include "launch/server/api/openenv.hpp"
#include "launch/server/api/task_shelf.hpp"
#include "launch/server/http/server.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

constexpr std::string_view handshake = "GET /ws HTTP/1.1\r\n"
                                       "Host: localhost\r\n"
                                       "Upgrade: websocket\r\n"
                                       "Connection: Upgrade\r\n"
                                       "Sec-WebSocket-Version: 13\r\n"
                                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

http::server& environment() {
  static const auto started = [] {
    std::vector<std::string> problems;
    auto tasks = services::task_shelf::open({KERNELMILL_FUZZ_TASKS}, {}, {}, true, problems);
    promise(tasks.has_value() && problems.empty(), "the installed tasks can be read");
    auto api = std::make_shared<services::api>();
    api->tasks = std::make_shared<const services::task_shelf>(std::move(*tasks));
    api->load = std::make_shared<services::evaluation_load>();
    http::server_options options;
    options.bounds.head_bytes = 4096;
    options.bounds.body_bytes = 8192;
    options.bounds.socket_time = std::chrono::seconds{1};
    return http::server::start(services::openenv_routes(api), options);
  }();
  promise(started.has_value(), "a server listens on the loopback interface");
  return **started;
}

/// Sends bytes and then says that no more come; returns all that comes back until the other side
/// hangs up.
std::string talk(std::string bytes) {
  int fd = call_loopback(environment().port());
  std::string answer;
  char part[16384];
  size_t sent = 0;
  for (bool over = false;;) {
    if (!over && sent == bytes.size()) {
      over = true;
      ::shutdown(fd, SHUT_WR);
    }
    pollfd entry{fd, static_cast<short>(POLLIN | (over ? 0 : POLLOUT)), 0};
    promise(poll_a_minute(entry), "a connection is answered or closed within a minute");
    if (!over && (entry.revents & POLLOUT) != 0) {
      auto n = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) sent += static_cast<size_t>(n);
      if (n < 0 && errno != EAGAIN) sent = bytes.size();
    }
    if ((entry.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    auto n = ::recv(fd, part, sizeof part, MSG_DONTWAIT);
    if (n > 0) answer.append(part, static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EAGAIN)) break;
  }
  ::close(fd);
  return answer;
}

} // namespace

void ws(std::string_view bytes) {
  auto answer = talk(std::string{handshake} + std::string{bytes});
  promise(answer.starts_with("HTTP/1.1 101 "), "the handshake is one");
}

} // namespace kernelmill::fuzz
