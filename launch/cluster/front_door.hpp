#pragma once

// The door of a head: a thread that accepts connections and shakes hands, so that only a
// peer that has shown a certificate of the cluster reaches CAF. Connections without one are few,
// short-lived and counted by address, and the descriptors that the process needs for its own
// work are never given to them. Without TLS it is the same, with a line of text for a certificate:
// CAF's server speaks first, so the door could not tell its peers from others otherwise.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launch/cluster/tls.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// What a client without TLS says first.
inline constexpr std::string_view plain_greeting = "kernelmill without TLS\n";

struct door_limits {
  size_t waiting = 128;     ///< connections before the end of their handshake
  size_t of_address = 64;   ///< of these, from one address (IPv6: from one /64)
  size_t inside = 4096;     ///< that have been let in and are open; the next one is closed
  int handshake_ms = 5000;  ///< then it is closed
  int highest_fd = 1 << 20; ///< a connection whose descriptor has this number or more is closed

  /// Those for a process that may have so many descriptors: a quarter of them stays its own,
  /// and half of them are of connections that have been let in.
  static door_limits for_descriptors(size_t count);
};

/// Thread safety: made, used and destroyed by any one thread.
class front_door {
public:
  /// Gets what has been let in, on the door's thread. Must not block.
  using receiver = std::function<void(link_socket)>;

  /// Listens at once; port 0 takes a free one. Without `tls` a peer that
  /// greets as plain_greeting is let in. Errors: "address_in_use", "address_unusable".
  static expected<std::unique_ptr<front_door>> open(const std::string& host, uint16_t port,
                                                    std::shared_ptr<const tls_context> tls,
                                                    const door_limits& limits, receiver let_in);

  ~front_door(); ///< closes what is waiting; what was let in stays

  uint16_t port() const;

private:
  struct state;
  explicit front_door(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
