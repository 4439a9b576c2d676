#pragma once

// A turn done again from what is stored, and what came out the same. Four levels, each above the
// one before it:
//   record       id, completion and candidate are what their hashes say; the completion, parsed
//                again, gives the candidate byte for byte: the build's input is the run's
//   build        the task's files and the toolchain are the same; it compiles, or fails, again
//   correctness  with the run's seed every case says the same, number by number
//   timing       the intervals of the speedup overlap; no verdict hangs on more

#include <optional>
#include <string>
#include <vector>

#include "actors/governance/judge.hpp"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill {

/// What one comparison came to. `not_compared`: one side has nothing to compare, and says why.
enum class sameness : unsigned char { equal, different, not_compared };

struct replay_check {
  const char* level; ///< "record", "build", "correctness", "timing"
  std::string what;  ///< "candidate", "toolchain", "cases"
  sameness said = sameness::equal;
  std::string detail; ///< of one that is not equal: both sides
};

/// The texts of a turn, read and held against their hashes.
struct stored_texts {
  std::string completion, candidate;
  std::vector<replay_check> checks;
  bool usable = false; ///< the candidate is the run's, so that building it says something
};
expected<stored_texts> read_texts(wire::TurnRecord::Reader turn, const artifact_store& artifacts);

/// The stored facts with what was built and evaluated now. `fault` is that of an evaluation that
/// failed.
Message<wire::TurnFacts> facts_again(wire::TurnRecord::Reader turn, wire::BuildResult::Reader built,
                                     const Message<wire::EvaluateResult>& evaluated,
                                     const std::optional<error>& fault);

std::vector<replay_check> compare_builds(wire::BuildResult::Reader before,
                                         wire::BuildResult::Reader now);
std::vector<replay_check> compare_evaluations(wire::EvaluateResult::Reader before,
                                              wire::EvaluateResult::Reader now);

/// Whether the verdict stands: outcome, gates and category are the same. What follows from the
/// clock is left out: the gates `performance`, and "success", "slower" and "not_timed" as one.
bool verdict_stands(wire::Verdict::Reader before, wire::Verdict::Reader now);

/// 64 hex digits of the seed that an evaluation drew; empty when it kept none.
std::string seed_hex(wire::EvaluateResult::Reader x);

} // namespace kernelmill
