#pragma once

// A turn as the family of flashinfer-trace and SOL-ExecBench writes it: a Solution (sources and how
// to build them) and a Trace (what came of one workload). docs/reference/exports.md says what is
// left open: a relative error and names of inputs, which a record does not have.

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "messages/lineage.capnp.h"

namespace kernelmill::exports {

/// A task's id as a name of a definition: "native_row_sum".
std::string sol_definition(const std::string& task);

/// "first_g3_e1_t2".
std::string sol_name(wire::TurnRecord::Reader turn);

/// REQUIRES: the turn has a candidate, which is `code`
nlohmann::ordered_json sol_solution(wire::TurnRecord::Reader turn, const std::string& code);

/// Nothing of a turn that says nothing of a kernel: it was lost, not timed or not honest, or had no
/// kernel; `why` is then the reason.
std::optional<nlohmann::ordered_json> sol_trace(wire::TurnRecord::Reader turn,
                                                const std::string& program, std::string& why);

} // namespace kernelmill::exports
