#pragma once

// What the two ends of a remote session say to each other over one connection of ssh: frames, each
// a line of JSON and then as many bytes as it says. Neither end believes the other: both parts have
// limits, and an answer that breaks them ends the connection.

#include <optional>
#include <string>
#include <string_view>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

/// Both ends must speak the same one.
inline constexpr int protocol_version = 1;

inline constexpr size_t most_head = 64 << 10;    ///< bytes of a frame's line
inline constexpr size_t most_payload = 64 << 20; ///< bytes behind it: lists of files
inline constexpr size_t most_piece = 1 << 20;    ///< bytes of a file or of a stream in one frame

struct frame {
  std::string verb; ///< lower-case letters
  nlohmann::json head = nlohmann::json::object();
  std::string payload = {};
};

std::string encode(const frame& x);

/// An error as a frame, and back. What the other end wrote is bounded and has no control bytes.
frame error_frame(const error& x);
error error_of(const frame& x);

/// Takes bytes as they come and gives whole frames. Thread safety: none.
class frame_reader {
public:
  void add(std::string_view bytes) { bytes_.append(bytes); }

  /// The next frame, or nothing when more bytes are needed. Errors: "remote_protocol".
  expected<std::optional<frame>> next();

private:
  std::string bytes_;
};

/// The error of an end that breaks the rules.
tl::unexpected<error> broken_rules(const std::string& what);

} // namespace kernelmill::remote
