#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "launch/analysis/watch/time_left.hpp"
#include "launch/node/node.hpp"

namespace kernelmill::commands {

/// Shows where a run stands on stderr: one line that is written over on a terminal, else a plain
/// line every five seconds. A line that does not fit the terminal loses its last parts, whole.
/// Thread safety: any thread.
class progress_display {
public:
  /// `max_turns` of an episode.
  progress_display(bool terminal, uint32_t max_turns) : terminal_(terminal) {
    pace_.max_turns = max_turns;
  }

  void update(const progress& x);

  /// Shows a line of its own; the next update draws the progress below it.
  void say(std::string_view line);

  /// Ends the line on a terminal.
  void finish();

private:
  void note_pace(const progress& x);
  std::vector<std::string> parts(const progress& x) const;

  std::mutex mutex_;
  bool terminal_;
  bool begun_ = false;
  bool line_open_ = false;
  std::string shown_;    ///< the latest line
  watch::run_pace pace_; ///< of this process
  progress last_;        ///< the latest that was given
  double last_shown_ = -1e9;
};

} // namespace kernelmill::commands
