#pragma once

#include <functional>
#include <memory>
#include <string>

#include "messages/error.hpp"
#include "messages/message.hpp"
#include "messages/run.capnp.h"

namespace kernelmill {

/// A Unix socket in the run's directory (mode 0600) that gives each client one
/// snapshot, in a frame of messages/framing.hpp: what `kernelmill ps`, `top` and
/// `explain` read. A client that then sends an order, a snapshot whose state is "pause", "resume"
/// or "cancel", gets one more, whose state is "done", or "refused" with the cause as its detail.
class control_socket {
public:
  /// Both are called on the socket's own thread: `document` once per connection, `obey` with the
  /// verb of an order.
  static expected<std::unique_ptr<control_socket>>
  open(const std::string& path, std::function<Message<wire::Snapshot>()> document,
       std::function<expected<void>(const std::string& verb)> obey);
  ~control_socket();

private:
  struct state;
  explicit control_socket(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
