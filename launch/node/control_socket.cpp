#include "launch/node/control_socket.hpp"

#include <cerrno>
#include <cstring>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "actors/snapshots.hpp"
#include "messages/framing.hpp"

namespace kernelmill {

struct control_socket::state {
  std::string path;
  std::function<Message<wire::Snapshot>()> document;
  std::function<expected<void>(const std::string&)> obey;
  int listener = -1;
  int stopped = -1;
  std::thread thread;

  ~state() {
    if (thread.joinable()) {
      uint64_t one = 1;
      (void)!::write(stopped, &one, sizeof one);
      thread.join();
    }
    if (listener >= 0) {
      ::close(listener);
      ::unlink(path.c_str());
    }
    if (stopped >= 0) ::close(stopped);
  }

  void serve() {
    for (;;) {
      pollfd wanted[] = {{listener, POLLIN, 0}, {stopped, POLLIN, 0}};
      if (::poll(wanted, 2, -1) < 0 && errno != EINTR) return;
      if (wanted[1].revents != 0) return;
      if (wanted[0].revents == 0) continue;
      int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;
      if (!has_gone(peer)) answer(peer);
      ::close(peer);
    }
  }

  // A client that only probes whether the socket is open has closed already: no actor is asked.
  static bool has_gone(int peer) {
    pollfd wanted{peer, POLLRDHUP, 0};
    return ::poll(&wanted, 1, 0) > 0;
  }

  // A reader that stops reading must not hold up the next one.
  void answer(int peer) const {
    constexpr int patience_ms = 2000;
    constexpr uint32_t kind_of_snapshot = 1;
    if (!send_message(peer, kind_of_snapshot, document(), {}, patience_ms)) return;
    auto order = receive_frame(peer, patience_ms); // most clients close now
    if (!order) return;
    Message<wire::Snapshot> asked{std::move(order->words)};
    std::string verb;
    try {
      verb = asked.open()->getState().cStr();
    } catch (const kj::Exception&) {
      return; // no order of ours
    }
    auto done = obey(verb);
    auto says = snapshot_of("order", {}, done ? "done" : "refused",
                            done ? std::string{} : done.error().message, {});
    (void)send_message(peer, kind_of_snapshot, says, {}, patience_ms);
  }
};

control_socket::control_socket(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

control_socket::~control_socket() = default;

expected<std::unique_ptr<control_socket>>
control_socket::open(const std::string& path, std::function<Message<wire::Snapshot>()> document,
                     std::function<expected<void>(const std::string&)> obey) {
  auto fail = [&](const char* what) {
    return infrastructure_error("control_socket",
                                std::string{"failed to "} + what + " " + path + ": " +
                                    std::strerror(errno),
                                "`kernelmill ps` will not see this run");
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return fail("bind");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  auto x = std::make_unique<state>();
  x->path = path;
  x->document = std::move(document);
  x->obey = std::move(obey);
  x->stopped = ::eventfd(0, EFD_CLOEXEC);
  x->listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::unlink(path.c_str()); // of a node that was killed; a live one holds the store's lock
  auto old_mask = ::umask(0177);
  int bound = ::bind(x->listener, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::umask(old_mask);
  if (bound != 0) return fail("bind");
  if (::listen(x->listener, 16) != 0) return fail("listen on");
  x->thread = std::thread{[raw = x.get()] { raw->serve(); }};
  return std::unique_ptr<control_socket>{new control_socket{std::move(x)}};
}

} // namespace kernelmill
