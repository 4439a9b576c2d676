#pragma once

// INTERNAL to launch/import: what the text of a gpu-mode problem says without being run.

#include <optional>
#include <string>
#include <vector>

namespace kernelmill::gpu_mode {

/// One way to say that outputs are close to those of the reference.
struct bound {
  double relative = 1e-5; // the suite's own defaults
  double absolute = 1e-8;
};

struct reference_text {
  std::string code;               ///< without its imports of the suite's modules; "cuda" is DEVICE
  bool takes_tuple = false;       ///< generate_input returns several
  std::vector<unsigned> mutates;  ///< of these, those that hold outputs
  std::vector<unsigned> copied;   ///< of those, what the reference does not write itself
  std::optional<bound> tolerance; ///< nothing: it is not one bound of plain numbers
};

/// Reads reference.py and task.py. Returns the reason why no task can be made of them, or "".
std::string read_reference(const std::string& reference, const std::string& types,
                           reference_text& into);

/// A submission whose `from task import input_t, output_t` needs no file beside it: the suite's
/// runner lays task.py there, which has types alone. No line moves.
std::string without_task_types(const std::string& submission);

} // namespace kernelmill::gpu_mode
