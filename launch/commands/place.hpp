#pragma once

// What users name: a run, or a group, an episode or a turn of one.

#include "messages/identity.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

struct place {
  run_directory run;
  name_parts name;
  bool whole_run = false;
};

/// "runs/x/g3.e1" is the run "runs/x" and the name "g3.e1"; without such an end it is a run.
/// Errors: those of find_run.
expected<place> locate(const std::string& what, const std::string& root);

} // namespace kernelmill::commands
