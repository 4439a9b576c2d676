#pragma once

#include <functional>
#include <memory>
#include <string>

#include "messages/error.hpp"
#include "messages/message.hpp"
#include "messages/run.capnp.h"

namespace kernelmill {

/// A Unix socket in the run's directory (mode 0600) that gives each client one
/// snapshot, in a frame of messages/framing.hpp, and closes: what `kernelmill ps`, `top` and
/// `explain` read. It takes no commands.
class control_socket {
public:
  /// `document` is called on the socket's own thread, once per connection.
  static expected<std::unique_ptr<control_socket>>
  open(const std::string& path, std::function<Message<wire::Snapshot>()> document);
  ~control_socket();

private:
  struct state;
  explicit control_socket(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
