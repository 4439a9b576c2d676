#pragma once

// By what connections are counted that come from one place.

#include <array>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

namespace kernelmill {

/// An IPv4 address, or the first half of one of IPv6: such a host has a /64 for itself.
using peer_origin = std::array<unsigned char, 8>;

inline peer_origin origin_of(const sockaddr_storage& from) {
  peer_origin result{};
  if (from.ss_family == AF_INET)
    std::memcpy(result.data(), &reinterpret_cast<const sockaddr_in&>(from).sin_addr, 4);
  else if (from.ss_family == AF_INET6)
    std::memcpy(result.data(), &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, 8);
  return result;
}

/// Of the other end of a socket; zeros where it has none.
inline peer_origin origin_of(int socket) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&from), &size) == 0 ? origin_of(from)
                                                                               : peer_origin{};
}

} // namespace kernelmill
