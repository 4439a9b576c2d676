#pragma once

// A turn as the family of flashinfer-trace and SOL-ExecBench writes it: a Solution (sources and how
// to build them) and a Trace (what came of one workload). docs/reference/exports.md says what is
// left open: a relative error and names of inputs, which a record does not have.

#include <functional>
#include <string>

#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"
#include "storage/export/rows/rows.hpp"

namespace kernelmill::exports {

struct sol_turn {
  std::string definition; ///< the task's id as a name: "native_row_sum"
  std::string name;       ///< of the solution: "first_g3_e1_t2"
  nlohmann::ordered_json solution, trace;
};

/// Hands on the turns of a group, in order. One that says nothing of a kernel is counted in
/// `without`: it was lost, not timed or not honest, or had no kernel. Errors: those of `to` and of
/// the artifacts.
expected<void> sol_turns(const admitted_group& from, const artifact_store& artifacts,
                         const std::string& program, left_out& without,
                         const std::function<expected<void>(const sol_turn&)>& to);

} // namespace kernelmill::exports
