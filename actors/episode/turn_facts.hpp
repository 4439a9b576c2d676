#pragma once

// The requests to compiler and referee for one candidate, and the facts for its judge. `run`,
// `eval`, `judge`, `serve` and `replay` share them, so the same rules judge every candidate.

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "actors/episode/completion_parser.hpp"
#include "actors/episode/unchanged.hpp"
#include "gpu/task/task.hpp"
#include "messages/error.hpp"
#include "messages/message.hpp"
#include "messages/verdict.capnp.h"

namespace kernelmill {

/// One candidate; what it refers to must outlive it.
struct candidate_view {
  const task& what; ///< on its terms
  const parsed_completion& parsed;
  const std::string& sha256; ///< of the kernel
};

Message<wire::BuildRequest> build_request(const candidate_view& x,
                                          std::chrono::milliseconds deadline);

struct evaluation_terms {
  wire::TimingPolicy::Reader timing;
  std::span<const unsigned char> seed; ///< 32 bytes; empty: the referee draws one
  std::chrono::milliseconds deadline;
  std::string_view sanitize = {};              ///< "on_accept" or "always"; empty: never
  std::chrono::milliseconds sanitize_limit{0}; ///< on top of `deadline`
  bool timed = true;                           ///< else as if `timing` said so
  bool visible_only = false;                   ///< no hidden case is run, and nothing is timed
  bool reports = false;                        ///< tools that look at it leave what they wrote
};

Message<wire::EvaluateRequest> evaluation_request(const candidate_view& x,
                                                  wire::BuildResult::Reader built,
                                                  const evaluation_terms& terms);

/// What became of a candidate. A message that is empty: that stage was not reached.
struct turn_course {
  const Message<wire::BuildResult>& build;
  const Message<wire::EvaluateResult>& evaluation;
  const Message<wire::ProfileResult>& profile;
  const error& fault; ///< of the turn as a whole; class `none`: there is none
  uint32_t turn = 0;
  uint32_t max_turns = 1;
};

/// Writes all that the judge needs. A candidate is compared with what was shown only after an
/// evaluation: without one nothing depends on it.
void set_turn_facts(wire::TurnFacts::Builder out, const candidate_view& x,
                    const turn_course& course, const shown_code& shown);

/// The same with texts that records keep beside their facts, for rewards that read them.
Message<wire::TurnFacts> with_answer(wire::TurnFacts::Reader facts, const std::string& thought,
                                     const std::string& kernel);

} // namespace kernelmill
