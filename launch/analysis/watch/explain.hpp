#pragma once

// Why something is where it is, in sentences. Each rule looks at one resource and says what it
// found; the first finding names the resource that the subject lacks.

#include <string>
#include <vector>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

struct finding {
  std::string resource; ///< "policy server", "slot", "compiler", "profiler", "disk", "store",
                        ///< "actor", "node"
  bool starved = false; ///< nothing goes on until a user fixes it
  std::string text;     ///< one or two sentences
  std::string next;     ///< what to do; may be empty
};

/// What the node's machine has to do with it.
struct surroundings {
  double free_bytes = -1; ///< on the file system of the run's directory; below 0: not known
  double disk_bytes = 0;
  json status;          ///< of a head that was asked; null: none was
  bool of_head = false; ///< nodes do the run's work, not the machine on which its process is
};
surroundings look_around(const world& in, const run_directory& run);

/// What keeps a run in progress from getting on, the worst first.
std::vector<finding> findings_of(const live_view& of, const stored_summary& stored,
                                 const surroundings& around);

/// The same for a run that no process works on.
std::vector<finding> findings_of_ended(const run_directory& run, const stored_summary& stored,
                                       const surroundings& around);

/// What one episode waits for.
finding finding_of(const live_view& of, const episode_row& x, const surroundings& around);

} // namespace kernelmill::watch
