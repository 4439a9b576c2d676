#include "launch/cluster/front_door.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/listening.hpp"
#include "messages/base/peer_origin.hpp"

namespace kernelmill {

namespace {

using steady = std::chrono::steady_clock;

constexpr int backlog = 512;
constexpr int accepts_in_a_row = 64; // then handshakes get their turn
constexpr std::chrono::milliseconds pause_without_descriptors{100};

struct visitor {
  link_socket link;
  peer_origin from{};
  steady::time_point until;
  short events = POLLIN;
  size_t said = 0; ///< bytes of the greeting, without TLS
};

// Reads no byte beyond the greeting: what follows is CAF's.
tls_step hear_greeting(visitor& x) {
  char text[plain_greeting.size()];
  for (;;) {
    auto left = plain_greeting.size() - x.said;
    if (left == 0) return tls_step::done;
    auto count = ::recv(x.link.fd.get(), text, left, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return tls_step::wants_read;
    if (count <= 0) return tls_step::failed;
    auto size = static_cast<size_t>(count);
    if (plain_greeting.compare(x.said, size, text, size) != 0) return tls_step::failed;
    x.said += size;
  }
}

} // namespace

door_limits door_limits::for_descriptors(size_t count) {
  door_limits result;
  result.highest_fd = static_cast<int>(std::min<size_t>(count - count / 4, 1 << 20));
  result.waiting = std::clamp<size_t>(count / 16, 8, 128);
  result.of_address = result.waiting / 2;
  result.inside = std::max<size_t>(count / 2, 8);
  return result;
}

struct front_door::state {
  descriptor listener, stop, spare;
  uint16_t port = 0;
  std::shared_ptr<const tls_context> tls;
  door_limits limits;
  receiver let_in;
  std::list<visitor> waiting; // the oldest first
  std::map<peer_origin, size_t> counts;
  /// How many are inside; each of them holds a place, also when this is gone.
  std::shared_ptr<std::atomic<size_t>> inside = std::make_shared<std::atomic<size_t>>(0);
  steady::time_point closed_until{}; // no descriptors: no connection is accepted
  std::thread thread;

  void run();
  void accept_some();
  void turn_one_away();
  void admit(descriptor fd, const sockaddr_storage& from);
  void make_room(const peer_origin& from);
  std::list<visitor>::iterator drop(std::list<visitor>::iterator x);
  void go_on(const std::vector<pollfd>& seen);
  void let_through(link_socket link);
  void drop_late();
  int next_wait() const;
};

// -- accepting ----------------------------------------------------------------------------------

std::list<visitor>::iterator front_door::state::drop(std::list<visitor>::iterator x) {
  if (--counts[x->from] == 0) counts.erase(x->from);
  return waiting.erase(x);
}

// Closes the oldest connection: of the newcomer's address where that has its share, else of all. An
// honest peer needs milliseconds for a handshake, so the oldest one is the least likely to be one.
void front_door::state::make_room(const peer_origin& from) {
  auto found = counts.find(from);
  bool crowded = found != counts.end() && found->second >= limits.of_address;
  if (!crowded && waiting.size() < limits.waiting) return;
  auto oldest = std::find_if(waiting.begin(), waiting.end(),
                             [&](const visitor& x) { return !crowded || x.from == from; });
  if (oldest != waiting.end()) drop(oldest);
}

void front_door::state::admit(descriptor fd, const sockaddr_storage& from) {
  if (fd.get() >= limits.highest_fd) return;
  int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  visitor peer;
  peer.from = origin_of(from);
  peer.link.fd = std::move(fd);
  if (!tls) { // what it said may be here already, and is then not heard again
    auto step = hear_greeting(peer);
    if (step == tls_step::done) return let_through(std::move(peer.link));
    if (step == tls_step::failed) return;
  }
  make_room(peer.from);
  if (tls) {
    peer.link.session = tls->session(peer.link.fd.get(), true);
    if (!peer.link.session) return;
  }
  peer.until = steady::now() + std::chrono::milliseconds{limits.handshake_ms};
  ++counts[peer.from];
  waiting.push_back(std::move(peer));
}

// With no descriptor left the kernel's queue would stay full of the first connections: the spare
// descriptor accepts one of them and closes it.
void front_door::state::turn_one_away() {
  spare.reset();
  descriptor gone{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  gone.reset();
  spare = descriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

void front_door::state::accept_some() {
  for (int i = 0; i < accepts_in_a_row; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    descriptor fd{::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &size,
                            SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (fd) {
      admit(std::move(fd), from);
      continue;
    }
    bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (exhausted) {
      turn_one_away();
      closed_until = steady::now() + pause_without_descriptors;
    }
    return; // no connection waits, or it has gone
  }
}

// -- handshakes ---------------------------------------------------------------------------------

// `seen` has the waiting ones in their order, after listener and stop.
void front_door::state::go_on(const std::vector<pollfd>& seen) {
  size_t i = 2;
  for (auto x = waiting.begin(); x != waiting.end() && i < seen.size(); ++i) {
    if (seen[i].revents == 0) {
      ++x;
      continue;
    }
    auto step = tls ? shake_hands(x->link.session.get()) : hear_greeting(*x);
    if (step == tls_step::wants_read || step == tls_step::wants_write) {
      x->events = step == tls_step::wants_read ? POLLIN : POLLOUT;
      ++x;
      continue;
    }
    auto link = std::move(x->link);
    x = drop(x);
    if (step == tls_step::done) let_through(std::move(link));
  }
}

void front_door::state::let_through(link_socket link) {
  if (inside->load() >= limits.inside) return;
  inside->fetch_add(1);
  link.place = std::shared_ptr<void>{nullptr, [count = inside](void*) { count->fetch_sub(1); }};
  let_in(std::move(link));
}

// All have the same time, so those that came first are late first.
void front_door::state::drop_late() {
  auto now = steady::now();
  while (!waiting.empty() && waiting.front().until <= now) drop(waiting.begin());
}

int front_door::state::next_wait() const {
  auto now = steady::now();
  auto next = now + std::chrono::hours{1};
  if (!waiting.empty()) next = waiting.front().until;
  if (closed_until > now) next = std::min(next, closed_until);
  auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

void front_door::state::run() {
  std::vector<pollfd> watched;
  for (;;) {
    bool open = closed_until <= steady::now();
    watched.clear();
    watched.push_back({stop.get(), POLLIN, 0});
    watched.push_back({open ? listener.get() : -1, POLLIN, 0});
    for (const auto& x : waiting) watched.push_back({x.link.fd.get(), x.events, 0});
    if (::poll(watched.data(), watched.size(), next_wait()) < 0) continue; // a signal
    if (watched[0].revents != 0) return;
    go_on(watched);
    drop_late();
    if (watched[1].revents != 0) accept_some();
  }
}

// -- opening and closing ------------------------------------------------------------------------

namespace {

descriptor listen_at(const addrinfo& at) {
  descriptor fd{::socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0 || ::listen(fd.get(), backlog) != 0)
    return {};
  return fd;
}

uint16_t port_of(int fd) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<sockaddr_in&>(at).sin_port);
}

} // namespace

front_door::front_door(std::unique_ptr<state> x) : state_(std::move(x)) {
  state_->thread = std::thread{[raw = state_.get()] { raw->run(); }};
}

front_door::~front_door() {
  uint64_t one = 1;
  write_retrying(state_->stop.get(), &one, sizeof one);
  state_->thread.join();
}

uint16_t front_door::port() const {
  return state_->port;
}

expected<std::unique_ptr<front_door>> front_door::open(const std::string& host, uint16_t port,
                                                       std::shared_ptr<const tls_context> tls,
                                                       const door_limits& limits, receiver let_in) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* first = nullptr;
  auto x = std::make_unique<state>();
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first) == 0) {
    std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found{first, ::freeaddrinfo};
    for (auto* at = first; at != nullptr && !x->listener; at = at->ai_next)
      x->listener = listen_at(*at);
  }
  x->stop = descriptor{::eventfd(0, EFD_CLOEXEC)};
  x->spare = descriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (!x->listener || !x->stop)
    return tl::unexpected<error>{listen_error(host, port, std::strerror(errno))};
  x->port = port_of(x->listener.get());
  x->tls = std::move(tls);
  x->limits = limits;
  if (!x->tls) x->limits.of_address = limits.waiting; // there is one address
  x->let_in = std::move(let_in);
  return std::unique_ptr<front_door>{new front_door{std::move(x)}};
}

} // namespace kernelmill
