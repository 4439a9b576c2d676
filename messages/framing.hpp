#pragma once

// How one message crosses a Unix stream socket between two of our own processes: a 16-byte
// header (magic, kind, byte count), then the words. File descriptors may ride on the header.

#include <cstdint>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"

namespace kernelmill {

struct frame {
  uint32_t kind = 0;            ///< what the words are; the two ends agree on the numbers
  kj::Array<capnp::word> words; ///< may be empty
  std::vector<int> descriptors; ///< received ones; the taker of the frame owns them
};

/// Sends one frame. `deadline_ms` below 0 waits for ever.
expected<void> send_frame(int socket, uint32_t kind, const void* words, size_t bytes,
                          const std::vector<int>& descriptors = {}, int deadline_ms = -1);

/// Receives one frame. Fails with category "peer_closed" at the end of the stream, "timeout" at
/// the deadline, and "malformed_message" when the header is not ours or announces more than
/// `limit` bytes. Received descriptors are close-on-exec.
expected<frame> receive_frame(int socket, int deadline_ms = -1, size_t limit = max_message_bytes);

template <class T>
expected<void> send_message(int socket, uint32_t kind, const Message<T>& x,
                            const std::vector<int>& descriptors = {}, int deadline_ms = -1) {
  return send_frame(socket, kind, x.data(), x.size(), descriptors, deadline_ms);
}

} // namespace kernelmill
