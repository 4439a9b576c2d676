#pragma once

// How long a run worked: the sum over its sessions, each from its opening to the last record before
// the next one. The pauses between sessions are no work, and neither is a session that found the
// run finished and added nothing to it. The end of `run`, `runs`, `stats` and `status` all say
// this.

#include <cstdint>
#include <map>

#include "messages/lineage.capnp.h"

namespace kernelmill::watch {

class working_time {
public:
  /// An opening or an end of a session. REQUIRES: all openings come before all other records.
  void add(wire::RunRecord::Reader x);

  /// A turn or an episode that was committed at `at`, in seconds since 1970. One that is older than
  /// the first session is a turn that a fork shares, and no work of this run.
  void add(double at);

  /// In seconds. `now`, if given, is the time at which the latest session is in progress.
  double seconds(double now = 0) const;

  double began_at() const noexcept { return began_at_; } ///< seconds since 1970; 0: never

private:
  struct session {
    uint32_t opening = 0;
    double last = 0;    ///< seconds since 1970, of its latest record
    bool added = false; ///< a turn, or the end of an episode
  };

  session* session_at(double at);
  bool had_nothing_to_do(const session& x) const;

  double began_at_ = 0;
  std::map<double, session> sessions_; ///< by the time of their openings
  std::map<uint32_t, bool> finished_;  ///< by opening: whether the session ended with all done
};

} // namespace kernelmill::watch
