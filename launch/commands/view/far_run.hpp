#pragma once

// A run of a head's, for commands that read a run's folder: a copy of what they need of it.

#include <memory>
#include <string>

#include "launch/commands/commands.hpp"
#include "launch/commands/place.hpp"

namespace kernelmill::commands {

/// A folder that is gone with this value.
class far_run {
public:
  /// Asks the head of --head for what `what` names. `texts`: with prompts, completions and code.
  /// Errors: those of reaching a head, "not_found".
  static expected<std::unique_ptr<far_run>> fetch(const invocation& in, const std::string& what,
                                                  bool texts);
  ~far_run();
  far_run(const far_run&) = delete;
  far_run& operator=(const far_run&) = delete;

  const place& where() const { return place_; }
  const std::string& directory() const { return directory_; } ///< on the head's machine

private:
  far_run() = default;

  std::string folder_;
  place place_;
  std::string directory_;
};

} // namespace kernelmill::commands
