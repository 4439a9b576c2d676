#pragma once

// How a candidate came from the ones before it. Every answer holds a complete program, so nothing
// here is called a patch.

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct past_candidate {
  std::string sha256; ///< empty: the answer held no program
  bool accepted = false;
};

/// Of the turns `before`, oldest first, and the turn's own candidate:
///   "none"        the answer holds no program (`sha256` is empty)
///   "synthesized" the first program of the episode
///   "repeated"    byte for byte the last program
///   "reverted"    byte for byte an earlier one
///   "repaired"    another program, accepted where the last turn was not
///   "rewritten"   another program
/// Of mode `tools` a call has one of "inspect_only", "patch_applied", "reformulated" (a whole
/// source), "evaluated", "benchmarked", "repaired" (it passes, and its parent failed), "branched",
/// "reverted" and "promoted"; a turn has that of its last call that was more than a look.
const char* transition_of(const std::vector<past_candidate>& before, std::string_view sha256,
                          bool accepted);

} // namespace kernelmill
