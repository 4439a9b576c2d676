#pragma once

// A connection of the near end to the far end's server, which is brought there where it is missing.

#include <functional>
#include <string>

#include "launch/remote/frames.hpp"
#include "launch/remote/ssh.hpp"
#include "messages/error.hpp"

namespace kernelmill::remote {

class connection {
public:
  /// Connects to `host`. A far end without this Kernelmill gets it first, which `talk` tells.
  /// Errors: those of ssh_failure(), "remote_program" when no Kernelmill runs there,
  /// "remote_protocol", "cancelled".
  static expected<connection> open(const std::string& host, const std::string& build, int wake,
                                   const std::function<void(const std::string&)>& talk);

  expected<void> send(const frame& x) { return ssh_.send(x); }

  /// The next frame; an error that the far end tells is one here. Errors: "remote_unreachable" when
  /// nothing came for `wait_ms`, or the connection ended.
  expected<frame> next(int wait_ms = usual_wait_ms);

  /// The next frame, which must be of this verb.
  expected<frame> next_of(const char* verb, int wait_ms = usual_wait_ms);

  static constexpr int usual_wait_ms = 600'000;

private:
  explicit connection(ssh_process ssh) : ssh_(std::move(ssh)) {}

  ssh_process ssh_;
  frame_reader reader_;
};

/// What the first line of the far end says; empty parts where it says nothing.
struct greeting {
  bool ready = false;
  std::string system, machine; ///< of uname, when Kernelmill is missing
};

/// Finds the line in what a login printed, and removes all up to its end; nothing when it has not
/// come yet.
std::optional<greeting> read_greeting(std::string& text);

/// The script that starts the far end's server: brought under `sha256`, or installed and of
/// `build`.
std::string server_script(const std::string& sha256, const std::string& build);

/// The script that unpacks a parcel from its stdin.
std::string unpack_script(const std::string& sha256);

} // namespace kernelmill::remote
