#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "launch/node/node.hpp"

namespace kernelmill::commands {

/// Shows where a run stands on stderr: one line that is written over on a terminal, else a plain
/// line every five seconds.
/// Thread safety: any thread.
class progress_display {
public:
  /// `max_turns` of an episode; 0 when builds say nothing of the whole, as in a resumed run.
  progress_display(bool terminal, uint32_t max_turns)
      : terminal_(terminal), max_turns_(max_turns) {}

  void update(const progress& x);

  /// Shows a line of its own; the next update draws the progress below it.
  void say(std::string_view line);

  /// Ends the line on a terminal.
  void finish();

private:
  double share(const progress& x) const;
  std::string text(const progress& x) const;

  std::mutex mutex_;
  bool terminal_;
  double max_turns_;
  bool begun_ = false;
  bool line_open_ = false;
  progress first_; // a resumed run does not start from nothing
  double last_shown_ = -1e9;
};

} // namespace kernelmill::commands
