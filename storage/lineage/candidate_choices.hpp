#pragma once

// What people decided of an episode's candidates: choices.jsonl of the run's folder, append-only.
// Records say what the policy did, and stay as they are; rewards and exports read nothing of this.

#include <map>
#include <string>

#include "messages/error.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

struct candidate_choice {
  std::string episode;   ///< "g3.e1"
  std::string candidate; ///< "c2"
  std::string status;    ///< "promoted" or "reverted"
  std::string note;      ///< why, in a person's words; may be empty
  double at = 0;         ///< seconds since 1970
};

/// Errors: those of the disk.
expected<void> add_choice(const run_directory& run, const candidate_choice& x);

/// What holds of an episode's candidates, by id: the last choice of each; of those that were
/// promoted, the last. Errors: those of the disk; a file that is not there says nothing.
expected<std::map<std::string, candidate_choice>> choices_of(const run_directory& run,
                                                             const std::string& episode);

} // namespace kernelmill
