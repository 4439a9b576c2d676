#pragma once

// An evaluation's record as it stands in the answer to the node.

#include <string>

#include "gpu/referee/evaluation.hpp"
#include "messages/evaluate.capnp.h"

namespace kernelmill {

/// Everything but the cases, which each contract names in its own way. `shape` is the timed one.
void write_record(const evaluation_record& x, const std::string& shape,
                  wire::EvaluateResult::Builder out);

} // namespace kernelmill
