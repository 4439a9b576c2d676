#include "messages/framing.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kernelmill {

namespace {

constexpr uint32_t frame_magic = 0x4b4d4631; // "KMF1"
constexpr size_t max_descriptors = 64;

struct frame_header {
  uint32_t magic;
  uint32_t kind;
  uint64_t bytes;
};

using steady = std::chrono::steady_clock;

class deadline {
public:
  explicit deadline(int ms)
      : forever_(ms < 0), end_(steady::now() + std::chrono::milliseconds(ms)) {}

  // Milliseconds for poll(2), rounded up.
  int left() const {
    if (forever_) return -1;
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(end_ - steady::now()).count();
    return ms > 0 ? static_cast<int>(ms) : 0;
  }

private:
  bool forever_;
  steady::time_point end_;
};

expected<void> wait_for(int socket, short events, const deadline& until) {
  for (;;) {
    pollfd entry{socket, events, 0};
    int left = until.left();
    int ready = ::poll(&entry, 1, left);
    if (ready > 0) return {};
    if (ready == 0)
      return infrastructure_error("timeout", "failed to talk to a process: no answer in time");
    if (errno != EINTR)
      return infrastructure_error("io",
                                  std::string{"failed to poll a socket: "} + std::strerror(errno));
  }
}

tl::unexpected<error> closed() {
  return infrastructure_error("peer_closed",
                              "failed to talk to a process: it closed the connection");
}

expected<void> send_bytes(int socket, const char* data, size_t size, const deadline& until) {
  while (size > 0) {
    auto sent = ::send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      if (auto ok = wait_for(socket, POLLOUT, until); !ok) return ok;
    } else if (errno != EINTR) {
      return closed();
    }
  }
  return {};
}

expected<void> receive_bytes(int socket, char* data, size_t size, const deadline& until) {
  while (size > 0) {
    auto got = ::recv(socket, data, size, MSG_DONTWAIT);
    if (got > 0) {
      data += got;
      size -= static_cast<size_t>(got);
    } else if (got == 0) {
      return closed();
    } else if (errno == EAGAIN) {
      if (auto ok = wait_for(socket, POLLIN, until); !ok) return ok;
    } else if (errno != EINTR) {
      return closed();
    }
  }
  return {};
}

// The header goes out in one sendmsg, so that the descriptors ride on its first byte.
expected<void> send_header(int socket, frame_header& header, const std::vector<int>& descriptors,
                           const deadline& until) {
  iovec part{&header, sizeof header};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors)] = {};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    auto* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(entry), descriptors.data(), sizeof(int) * descriptors.size());
  }
  for (;;) {
    auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      return send_bytes(socket, reinterpret_cast<char*>(&header) + sent,
                        sizeof header - static_cast<size_t>(sent), until);
    if (errno == EAGAIN) {
      if (auto ok = wait_for(socket, POLLOUT, until); !ok) return ok;
    } else if (errno != EINTR) {
      return closed();
    }
  }
}

void take_descriptors(msghdr& message, std::vector<int>& into) {
  for (auto* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
       entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    auto count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    auto first = into.size();
    into.resize(first + count);
    std::memcpy(into.data() + first, CMSG_DATA(entry), count * sizeof(int));
  }
}

expected<void> receive_header(int socket, frame_header& header, std::vector<int>& descriptors,
                              const deadline& until) {
  iovec part{&header, sizeof header};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors)];
  for (;;) {
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got > 0) {
      take_descriptors(message, descriptors);
      return receive_bytes(socket, reinterpret_cast<char*>(&header) + got,
                           sizeof header - static_cast<size_t>(got), until);
    }
    if (got == 0) return closed();
    if (errno == EAGAIN) {
      if (auto ok = wait_for(socket, POLLIN, until); !ok) return ok;
    } else if (errno != EINTR) {
      return closed();
    }
  }
}

} // namespace

expected<void> send_frame(int socket, uint32_t kind, const void* words, size_t bytes,
                          const std::vector<int>& descriptors, int deadline_ms) {
  deadline until{deadline_ms};
  frame_header header{frame_magic, kind, bytes};
  if (auto ok = send_header(socket, header, descriptors, until); !ok) return ok;
  return send_bytes(socket, static_cast<const char*>(words), bytes, until);
}

expected<frame> receive_frame(int socket, int deadline_ms, size_t limit) {
  deadline until{deadline_ms};
  frame_header header{};
  frame result;
  auto fail = [&](error e) -> expected<frame> {
    for (int fd : result.descriptors) ::close(fd);
    return tl::unexpected<error>{std::move(e)};
  };
  if (auto ok = receive_header(socket, header, result.descriptors, until); !ok)
    return fail(ok.error());
  if (header.magic != frame_magic || header.bytes > limit ||
      header.bytes % sizeof(capnp::word) != 0)
    return fail({fault_class::infrastructure,
                 "malformed_message",
                 "failed to read a frame: the header is not one of ours or announces too much",
                 {}});
  result.kind = header.kind;
  result.words = kj::heapArray<capnp::word>(header.bytes / sizeof(capnp::word));
  if (auto ok =
          receive_bytes(socket, reinterpret_cast<char*>(result.words.begin()), header.bytes, until);
      !ok)
    return fail(ok.error());
  return result;
}

} // namespace kernelmill
