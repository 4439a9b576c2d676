#pragma once

// Packets between us and our Python processes (kernelmill_torch/channel.py): one JSON text each
// over a SOCK_SEQPACKET socket, with descriptors.

#include <string>
#include <vector>

#include "messages/base/descriptor.hpp"
#include "messages/error.hpp"

namespace kernelmill {

inline constexpr size_t most_packet = 256 << 10;

struct packet_sockets {
  descriptor ours;
  descriptor theirs;
};

expected<packet_sockets> make_packet_sockets();

/// False when nobody is there to take it; errno says why. REQUIRES: at most 8 descriptors.
bool send_packet(int socket, const std::string& text, const std::vector<int>& descriptors);

struct packet {
  std::string text; ///< empty at the end of the stream
  std::vector<descriptor> descriptors;
};

/// Fails with "timeout" when nothing comes in time.
expected<packet> receive_packet(int socket, int deadline_ms);

} // namespace kernelmill
