#pragma once

// A policy and evaluators of zero latency, with answers of a realistic size: a completion of
// about 1.2 KB, a build with its toolchain line, an evaluation of eight cases with timing.

#include <memory>

#include <caf/all.hpp>

#include "actors/episode/episode.hpp"

namespace kernelmill::bench {

struct services_options {
  bool policy_answers = true;  ///< false: requests wait for ever, so that episodes stay alive
  uint32_t answered_turns = 0; ///< with policy_answers false: turns that are still answered
  size_t more_text =
      0; ///< bytes that thought and kernel of each completion have more; none is like another
};

/// Everything but lineage; spawns the actors in `system`.
std::shared_ptr<episode_services> instant_services(caf::actor_system& system,
                                                   const services_options& options);

std::shared_ptr<const task> bench_task();

/// What the services answer. `more` makes completion and kernel longer.
Message<wire::CompletionResult> instant_completion(const std::string& more = {});
Message<wire::BuildResult> instant_build();
Message<wire::EvaluateResult> instant_evaluation();

} // namespace kernelmill::bench
