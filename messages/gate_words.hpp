#pragma once

// The words for a gate's state, in whatever shows a verdict.

#include <string_view>

#include "messages/verdict.capnp.h"

namespace kernelmill {

/// "pass", "fail", "not_run", "blocked". Of an accepted candidate two gates can fail, and neither
/// rejects it: performance is then "slower", originality "copy".
inline std::string_view gate_word(wire::Outcome outcome, wire::Gate::Reader gate) {
  switch (gate.getStatus()) {
    case wire::GateStatus::PASS: return "pass";
    case wire::GateStatus::NOT_RUN: return "not_run";
    case wire::GateStatus::BLOCKED: return "blocked";
    case wire::GateStatus::FAIL: break;
  }
  if (outcome != wire::Outcome::ACCEPTED) return "fail";
  return gate.getName() == "originality" ? "copy" : "slower";
}

} // namespace kernelmill
