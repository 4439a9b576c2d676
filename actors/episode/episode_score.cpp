#include "actors/episode/episode_score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Nothing where the infrastructure lost the turn; NaN where the machine could not time it.
std::optional<double> reward_of(const scored_turn& x) {
  if (x.infrastructure) return std::nullopt;
  return x.paid ? x.reward : unknown;
}

// Whether an earlier turn with the same source had a reward.
bool repeats(std::span<const scored_turn> turns, size_t at) {
  const auto& source = turns[at].source;
  return !source.empty() &&
         std::any_of(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(at),
                     [&](const scored_turn& x) { return x.source == source && x.paid; });
}

// Compares rewards. A right kernel of unknown speed is better than a wrong one only, and a turn
// that asked for no verdict is no result.
bool is_better(const scored_turn& a, const scored_turn& b) {
  auto open = [](const auto& x) { return x.evidence.outcome == wire::Outcome::OPEN; };
  if (open(a) != open(b)) return !open(a);
  auto paid = [](const auto& x) { return x.paid && !x.infrastructure; };
  if (paid(a) && paid(b)) return a.reward > b.reward;
  if (a.accepted != b.accepted) return a.accepted;
  return paid(a) && !paid(b);
}

void set_numbers(capnp::List<double>::Builder out, std::span<const std::optional<double>> xs) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, xs[i].value_or(unknown));
}

void set_readiness(wire::Readiness::Builder out, const readiness& x) {
  out.setKind(x.kind);
  auto reasons = out.initReasons(static_cast<unsigned>(x.reasons.size()));
  for (unsigned i = 0; i < reasons.size(); ++i) reasons.set(i, x.reasons[i]);
}

} // namespace

bool is_left_out(std::string_view stop_reason) noexcept {
  return stop_reason == stopped_by_quorum || stop_reason == stopped_by_infrastructure;
}

scored_turn score_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader judged) {
  scored_turn x;
  x.reward = judged.getReward();
  x.speedup_low = turn.getFacts().getEvaluation().getTiming().getSpeedup().getLow();
  x.accepted = judged.getOutcome() == wire::Outcome::ACCEPTED;
  x.infrastructure = judged.getOutcome() == wire::Outcome::INFRASTRUCTURE;
  x.paid = is_paid(judged);
  x.evidence = evidence_of(turn, judged);
  x.source = turn.getCandidateSha256();
  return x;
}

void score_episode(wire::EpisodeRecord::Builder out, std::span<const scored_turn> turns,
                   double gamma, bool left_out, unsigned unspent) {
  std::vector<std::optional<double>> rewards;
  std::vector<readiness_evidence> evidence;
  uint32_t best = 0, not_timed = 0;
  double best_speedup = 0;
  bool accepted = false, infrastructure = false;
  for (uint32_t i = 0; i < turns.size(); ++i) {
    const auto& turn = turns[i];
    rewards.push_back(reward_of(turn));
    if (rewards.back() && repeats(turns, i)) rewards.back() = std::min(*rewards.back(), 0.0);
    evidence.push_back(turn.evidence);
    infrastructure |= turn.infrastructure;
    accepted |= turn.accepted;
    not_timed += turn.evidence.not_timed;
    if (turn.accepted && !turn.evidence.copied)
      best_speedup = std::max(best_speedup, turn.speedup_low);
    if (is_better(turn, turns[best])) best = i;
  }
  auto count = static_cast<unsigned>(turns.size());
  out.setTurns(count);
  out.setOutcome(left_out || infrastructure || turns.empty() ? wire::Outcome::INFRASTRUCTURE
                 : accepted                                  ? wire::Outcome::ACCEPTED
                                                             : wire::Outcome::REJECTED);
  out.setBestTurn(best);
  set_numbers(out.initRewards(count), rewards);
  auto returns = discounted_returns(rewards, gamma, unspent);
  auto list = out.initReturns(count);
  for (unsigned i = 0; i < count; ++i) list.set(i, returns[i]);
  out.setBestSpeedup(best_speedup);
  set_readiness(out.initReadiness(), readiness_of_episode(evidence));
  out.setNotTimed(not_timed);
  out.setUnspentTurns(unspent);
}

std::optional<double> compared_return(wire::EpisodeRecord::Reader episode) {
  auto returns = episode.getReturns();
  if (episode.getOutcome() == wire::Outcome::INFRASTRUCTURE || returns.size() == 0 ||
      !std::isfinite(returns[0]))
    return std::nullopt;
  return returns[0];
}

void score_group(wire::GroupRecord::Builder out, std::span<const std::optional<double>> returns,
                 advantage_kind kind) {
  auto statistics = group_advantages(returns, kind);
  auto count = static_cast<unsigned>(returns.size());
  out.setMean(statistics.mean);
  out.setDeviation(statistics.deviation);
  set_numbers(out.initReturns(count), returns);
  auto advantages = out.initAdvantages(count);
  std::vector<uint32_t> left_out;
  for (unsigned i = 0; i < count; ++i) {
    advantages.set(i, statistics.advantages[i]);
    if (!returns[i]) left_out.push_back(i);
  }
  auto list = out.initLeftOut(static_cast<unsigned>(left_out.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, left_out[i]);
}

} // namespace kernelmill
