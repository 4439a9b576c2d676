#pragma once

// INTERNAL to gpu/torch: a candidate at one shape of a problem. The torch referee runs and
// compares, this side keeps the statistics and writes the record, as for the other contracts.

#include <string>

#include "gpu/torch/torch_evaluation.hpp"
#include "gpu/torch/torch_shapes.hpp"

namespace kernelmill {

/// How long after the time of an evaluation the torch referee has answered, which keeps that time
/// itself. The node waits 15 s longer than the deadline.
inline constexpr int grace_ms = 23'000;

/// What is asked for at one shape.
struct shape_order {
  judged_shape at;
  double half_width = 0;
  double deadline = 0;
  std::string seed; ///< hex; empty: drawn when the candidate is loaded
};

/// What the torch referee is told of a problem in any case.
nlohmann::json problem_of(const task& spec);

/// The tolerance of the problem's suite at a shape, or null.
nlohmann::json tolerance_at(const task& spec, const judged_shape& at);

/// The variants among shapes, with their constants.
nlohmann::json variants_of(const std::vector<judged_shape>& shapes);

/// A fault as the torch referee tells it.
error fault_from(const nlohmann::json& x);

/// Judges, once more where that is needed, in a fresh process.
shape_result evaluate_shape(torch_parts parts, wire::EvaluateRequest::Reader request,
                            const task& spec, const shape_order& order);

} // namespace kernelmill
