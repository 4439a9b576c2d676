#include "gpu/python/packets.hpp"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace kernelmill {

namespace {

constexpr size_t most_descriptors = 8;

} // namespace

expected<packet_sockets> make_packet_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return infrastructure_error("io", std::string{"failed to make a socket pair: "} +
                                          std::strerror(errno));
  return packet_sockets{descriptor{ends[0]}, descriptor{ends[1]}};
}

bool send_packet(int socket, const std::string& text, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char area[CMSG_SPACE(sizeof(int) * most_descriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = area;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    auto* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(head), descriptors.data(), sizeof(int) * descriptors.size());
  }
  ssize_t sent = -1;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

expected<packet> receive_packet(int socket, int deadline_ms) {
  if (!wait_readable(socket, deadline_ms))
    return infrastructure_error("timeout",
                                "no packet within " + std::to_string(deadline_ms) + " ms");
  packet result;
  result.text.resize(most_packet);
  iovec part{result.text.data(), result.text.size()};
  alignas(cmsghdr) char area[CMSG_SPACE(sizeof(int) * most_descriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = area;
  message.msg_controllen = sizeof area;
  ssize_t got = -1;
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  result.text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  for (auto* x = CMSG_FIRSTHDR(&message); x != nullptr; x = CMSG_NXTHDR(&message, x)) {
    if (x->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (x->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(x) + i * sizeof(int), sizeof fd);
      result.descriptors.emplace_back(fd);
    }
  }
  return result;
}

} // namespace kernelmill
