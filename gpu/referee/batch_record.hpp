#pragma once

// What batches say of a candidate, as a record has it.

#include <string>
#include <vector>

#include "gpu/referee/evaluation.hpp"
#include "gpu/timing/controller.hpp"

namespace kernelmill {

/// `patterns`: names of the timed patterns of inputs, the task's own first.
void write_batches(const timing::controller& control, const timing::calibration& before,
                   const std::vector<std::string>& patterns, evaluation_record& into);

/// The same where the evaluation's time was over before all batches of the plan were made.
void write_too_few(const timing::controller& control, timing_record& into);

} // namespace kernelmill
