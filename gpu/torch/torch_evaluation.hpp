#pragma once

// An evaluation of the contract `torch`: the torch referee runs and compares, this side keeps the
// statistics and writes the record, as for the other contracts.

#include "gpu/referee/machine.hpp"
#include "gpu/torch/torch_lane.hpp"
#include "messages/defaults.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

class device;

struct torch_parts {
  torch_lane& lane;
  machine& hardware;
  device* gpu = nullptr; ///< of a GPU slot
  unsigned determinism_runs = defaults::determinism_runs;
  /// What a build made of a module that is timed in place of the problem's own; empty: none is.
  std::string named_baseline = {};
};

/// Every fault is part of the answer.
Message<wire::EvaluateResult> evaluate_torch(torch_parts parts,
                                             wire::EvaluateRequest::Reader request);

/// What a user should know of a problem before trusting verdicts on it.
Message<wire::CheckResult> check_torch(torch_parts parts, const std::string& directory);

} // namespace kernelmill
