#pragma once

// INTERNAL to gpu/torch: a problem at several shapes. Each is judged as if it were a problem of its
// own, the candidate in a fresh process; here is what the results say together.

#include <string>
#include <vector>

#include "gpu/referee/evaluation.hpp"
#include "gpu/task/task.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

/// One shape at which a problem is judged.
struct judged_shape {
  const torch_variant* variant = nullptr; ///< none: the problem as it is
  size_t hidden_number = 0;               ///< of a hidden variant, from 1
  bool timed = false;

  bool is_hidden() const { return hidden_number > 0; }
  std::string label() const; ///< as messages/shapes.hpp has it
};

/// Those of a problem in the order in which they are judged: its own, then visible ones before
/// hidden ones. `timed`: whether time is asked for at all.
std::vector<judged_shape> shapes_of(const torch_problem& x, bool timed);

/// What was found at one of them.
struct shape_result {
  judged_shape at;
  evaluation_record record;
  std::string inputs; ///< "float32[64, 96]"
  std::vector<nlohmann::json> trials;

  bool is_right() const;
};

/// What the results say together; `planned` is how many shapes there are, of which those behind a
/// result that is not right are missing. A fault at a hidden shape says neither shape nor numbers.
/// REQUIRES: all but the last are right.
evaluation_record together(const std::vector<shape_result>& all, size_t planned);

/// "float32[64, 96] and 2 more shapes, geometric means": where the times of together() belong.
std::string timed_at(const std::vector<shape_result>& all);

/// The geometric mean of times and speedups, which is paid, with those of each shape behind them;
/// none where one of them has none. REQUIRES: at least one result, the first of which is timed.
timing_record mean_of_shapes(const std::vector<shape_result>& all);

/// Writes the trials of all.
void write_trials(const std::vector<shape_result>& all, wire::EvaluateResult::Builder out);

} // namespace kernelmill
