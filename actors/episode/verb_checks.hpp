#pragma once

// What the verb of a task asks for beyond right results: statements about counters that fit a
// diagnosis, and a strategy that is not the starter's.

#include <string>
#include <vector>

#include "actors/episode/completion_parser.hpp"
#include "gpu/task/task.hpp"
#include "messages/evaluate.capnp.h"

namespace kernelmill {

struct verb_check {
  std::string name; ///< of a counter, or what was compared
  bool hidden = false;
  bool right = true; ///< also where nothing was measured, as the note says
  std::string note;
};

struct verb_facts {
  std::vector<verb_check> checks;
  std::string same_strategy; ///< why it computes as its starter did; empty: it does not
};

/// What an evaluation and the answer itself say of it. REQUIRES: the evaluation found it right.
verb_facts verb_facts_of(const task& x, const parsed_completion& said,
                         wire::EvaluateResult::Reader evaluation);

/// The statements about counters that a `diagnose` task wants: "dram_bytes falls".
std::vector<std::string> right_statements(const task& x);

} // namespace kernelmill
