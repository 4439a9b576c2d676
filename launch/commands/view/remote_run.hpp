#pragma once

// A head's run for commands that read a run's folder: a local copy of the records that they need.

#include <memory>
#include <string>

#include "launch/commands/commands.hpp"
#include "launch/commands/place.hpp"

namespace kernelmill::commands {

/// A temporary folder; the destructor removes it.
class remote_run {
public:
  /// Asks the head of --head for what `what` names. `texts`: with prompts, completions and code.
  /// Errors: those of reaching a head, "not_found".
  static expected<std::unique_ptr<remote_run>> fetch(const invocation& in, const std::string& what,
                                                     bool texts);
  ~remote_run();
  remote_run(const remote_run&) = delete;
  remote_run& operator=(const remote_run&) = delete;

  const place& where() const { return place_; }
  const std::string& directory() const { return directory_; } ///< on the head's machine

private:
  remote_run() = default;

  std::string folder_;
  place place_;
  std::string directory_;
};

} // namespace kernelmill::commands
