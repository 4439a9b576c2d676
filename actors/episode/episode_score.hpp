#pragma once

// What an episode and a group earn, from the verdicts of their turns: one maker for runs, which
// score as turns end, and for `rescore`, which does it again by other rules.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/episode/returns.hpp"
#include "actors/governance/judge.hpp"

namespace kernelmill {

/// The stop reason of an episode that its group did not wait for. Its outcome is INFRASTRUCTURE: a
/// return that was cut short does not count.
inline constexpr const char* stopped_by_quorum = "quorum";

/// Of one that a fault of a machine or a server ended. Its outcome is INFRASTRUCTURE, too.
inline constexpr const char* stopped_by_infrastructure = "infrastructure";

/// Whether an episode that ended so is compared with nothing, whatever its turns earned.
bool is_left_out(std::string_view stop_reason) noexcept;

/// What the score of an episode needs to know of a turn.
struct scored_turn {
  double reward = 0;      ///< only where it is `paid`
  double speedup_low = 0; ///< lower bound of the speedup; 0: not measured
  bool accepted = false;
  bool infrastructure = false;
  bool paid = true; ///< false: no reward, for the machine lost the turn or could not time it
  readiness_evidence evidence;
  std::string source; ///< SHA-256 of the candidate; empty where there was none
};

/// The same of a turn's facts under the verdict `judged`, which need not be the stored one.
scored_turn score_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader judged);

/// Sets turns, outcome, bestTurn, rewards, returns, bestSpeedup, readiness and notTimed.
/// `left_out`: the run compares the episode with nothing, whatever its turns earned. `unspent`:
/// turns that a stop by speed left. A source that had a reward in an earlier turn earns 0.
void score_episode(wire::EpisodeRecord::Builder out, std::span<const scored_turn> turns,
                   double gamma, bool left_out, unsigned unspent);

/// The return that an ended episode is compared by; nothing where it is compared with nothing: the
/// infrastructure lost it, or the machine could not time one of its turns.
std::optional<double> compared_return(wire::EpisodeRecord::Reader episode);

/// Sets returns, advantages, mean, deviation and leftOut. `returns` has one entry a member.
void score_group(wire::GroupRecord::Builder out, std::span<const std::optional<double>> returns,
                 advantage_kind kind);

} // namespace kernelmill
