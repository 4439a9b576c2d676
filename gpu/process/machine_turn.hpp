#pragma once

// Whose turn it is on cores or a GPU: nodes and runs of one machine that share them would disturb
// each other's timings until none counts.

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "messages/base/descriptor.hpp"

namespace kernelmill {

/// Holds what it names, such as "core-3", until it is destroyed; the system lets go of what a
/// process held that was killed. Processes of other users and in other containers do not see it.
class machine_turn {
public:
  /// Waits until all of `names` are free, at most `patience` or until `stop`; then, and where no
  /// lock can be made, the turn is without them. Who held them last lets others go first.
  static machine_turn wait_for(std::vector<std::string> names, std::chrono::milliseconds patience,
                               const std::stop_token& stop);

  /// Whether all names are held.
  bool holds() const noexcept { return holds_; }

private:
  std::vector<descriptor> locks_;
  bool holds_ = false;
};

} // namespace kernelmill
