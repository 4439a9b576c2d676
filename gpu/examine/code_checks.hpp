#pragma once

// What the compiler makes of a candidate beside what it makes of its task's starter, as a part of
// an evaluation: whether a reformulation computes in another way, and whether a repair removed
// what a diagnosis names.

#include <map>
#include <string>

#include "gpu/examine/compiled_code.hpp"
#include "gpu/task/task.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// Thread safety: none.
struct code_checker {
  sandbox& walls;
  code_compilers compilers = {};

  /// INTERNAL: by the hash of source and build. One candidate is judged again and again.
  std::map<std::string, compiled_code> known = {};
};

/// Returns `judged` with counters of a right candidate: `starter_code_kept` (see kept_share()) for
/// the verb reformulate, and for each counter of code that the task names that of the candidate
/// and, as "starter_NAME", that of the starter. What cannot be had by `until` (now_seconds()) is
/// listed in `missing`.
Message<wire::EvaluateResult> with_code_counters(code_checker& by, const task& what,
                                                 const std::string& source,
                                                 const Message<wire::EvaluateResult>& judged,
                                                 double until);

} // namespace kernelmill
