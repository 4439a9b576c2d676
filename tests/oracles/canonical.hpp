#pragma once

// What two runs of one configuration must have in common, byte for byte: a run that was killed
// and resumed, and one that was not disturbed.
//
// Left out, because it is timed, or follows from the inputs that the referee draws afresh:
//   turns     seconds, startedAt, committedAt; the completion's requestId, attempts, promptTokens,
//             promptTokenIds and weightVersions, and where its audit stands; the build's seconds,
//             cached, libraryPath and librarySha256; the evaluation's seconds, seed, timing,
//             counters, device, output, spans and conditions; of each case maxError, bound,
//             badCount and firstBad; the profile; evidence of findings, and findings that say
//             how fast something was; the reward, its components
//             named "speed...", "performance..." or "timing...", and the performance gate; the
//             feedback and the components of an accepted turn, whether it is unpaid, and whether
//             its category is "success", "slower" or "not_timed", which becomes "success"
//   episodes  seconds, committedAt, bestTurn, bestSpeedup, rewards, returns, notTimed
//   groups    returns, advantages, mean, deviation, leftOut, committedAt
//   runs      whether they are a trace of rewards
//   texts     feedback, prompts after the first turn, messages of faults, reasons: lines about
//             time are dropped, and every number becomes "#"
// All else stands: ids, order, prompts, completions, candidates, gates, categories, outcomes,
// findings, diagnostics, stop reasons, readiness.

#include <string>

#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

/// Returns one line of JSON for each record of the run, in the order of their keys.
expected<std::string> canonical_lineage(const store& from, const artifact_store& artifacts,
                                        const std::string& run);

/// Drops lines about time and turns numbers into "#".
std::string without_timing(const std::string& text);

} // namespace kernelmill
