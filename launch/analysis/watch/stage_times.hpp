#pragma once

// Where the time of a turn went: work apart from waiting. A stage's time in a record runs from the
// request to the answer, so that it has the wait for a worker in it; what did the work says how
// long that took.

#include <array>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"

namespace kernelmill::watch {

struct stage_time {
  const char* stage;  ///< "retrieve", "policy", "build", "evaluate", "profile", "judge"
  double seconds = 0; ///< from request to answer
  double work = 0;    ///< of these; of a build from the cache 0

  double waited() const { return seconds - work; }
};

/// In the order of a turn. A policy server does not say how long a request stood in its queue, so
/// the time of `policy` is all work; `retrieve` and `judge` wait for no worker.
std::array<stage_time, 6> stage_times(wire::TurnRecord::Reader turn);

/// Adds the seconds that a turn's evaluations held a slot, by part: "task", "load", "correctness".
void add_slot_seconds(std::map<std::string, double>& to, wire::TurnRecord::Reader turn);

/// {"seconds": {"build": 0.4, ...}, "waited": {"build": 12, ...}}: work by stage, and waiting
/// apart.
nlohmann::ordered_json times_json(wire::TurnRecord::Reader turn);

} // namespace kernelmill::watch
