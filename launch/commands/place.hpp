#pragma once

// What users name: a run, or a group, an episode or a turn of one.

#include <cstdint>
#include <optional>
#include <string>

#include "messages/identity.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

struct place {
  run_directory run;
  name_parts name;
  bool whole_run = false;
};

/// The turn that won a search that has ended with so many turns; nothing of any other run.
std::optional<name_parts> winner_of(const run_directory& run, uint64_t turns);

/// "runs/x/g3.e1" is the run "runs/x" and the name "g3.e1"; "runs/x/best" the turn with the best
/// speedup, of a search its winner; without such an end it is a run. Errors: those of find_run.
expected<place> locate(const std::string& what, const std::string& root);

} // namespace kernelmill::commands
