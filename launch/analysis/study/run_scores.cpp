#include "launch/analysis/study/run_scores.hpp"

#include <algorithm>

#include "messages/judged.hpp"

namespace kernelmill::study {

namespace {

/// An episode while its records are read.
struct open_episode {
  std::string task;
  episode_score score;
  uint64_t judged = 0;
};

void take_turn(open_episode& to, wire::TurnRecord::Reader turn, uint32_t shared_turns) {
  if (turn.getTurn() < shared_turns) return;
  auto verdict = turn.getVerdict();
  if (!is_judged(verdict)) return;
  ++to.judged;
  auto& x = to.score;
  if (is_paid(verdict) && (!x.reward || verdict.getReward() > *x.reward))
    x.reward = verdict.getReward();
  if (verdict.getOutcome() != wire::Outcome::ACCEPTED) return;
  x.correct = true;
  reporting::keep_best(x.best_speedup, reporting::counted_speedup(turn, shared_turns));
}

void close(task_scores& to, const open_episode& x, wire::EpisodeRecord::Reader end) {
  if (end.getOutcome() == wire::Outcome::INFRASTRUCTURE || x.judged == 0)
    ++to.infrastructure;
  else
    to.episodes.push_back(x.score);
}

} // namespace

uint64_t task_scores::correct() const {
  return static_cast<uint64_t>(
      std::count_if(episodes.begin(), episodes.end(), [](const auto& x) { return x.correct; }));
}

std::optional<double> task_scores::reward() const {
  double sum = 0;
  uint64_t n = 0;
  for (const auto& x : episodes)
    if (x.reward) {
      sum += *x.reward;
      ++n;
    }
  return n > 0 ? std::optional{sum / static_cast<double>(n)} : std::nullopt;
}

std::optional<measured_speedup> task_scores::best_speedup() const {
  std::optional<measured_speedup> result;
  for (const auto& x : episodes) reporting::keep_best(result, x.best_speedup);
  return result;
}

std::optional<double> task_scores::geomean_speedup() const {
  std::vector<double> estimates;
  for (const auto& x : episodes)
    if (x.best_speedup) estimates.push_back(x.best_speedup->estimate);
  return reporting::geomean_speedup(estimates);
}

expected<run_scores> read_scores(const store& from, const std::string& run, uint32_t shared_turns) {
  run_scores result;
  auto groups = from.groups(run);
  KM_TRY(groups);
  for (auto group : *groups) {
    std::map<uint32_t, open_episode> open;
    auto scanned = from.scan_group(run, group, [&](wire::Record::Reader record) {
      if (record.isTurn()) {
        auto turn = record.getTurn();
        auto& x = open[turn.getEpisode().getMember()];
        x.task = turn.getEpisode().getTask().cStr();
        take_turn(x, turn, shared_turns);
      } else if (record.isEpisode()) {
        auto end = record.getEpisode();
        auto member = end.getEpisode().getMember();
        close(result[end.getEpisode().getTask().cStr()], open[member], end);
        open.erase(member);
      }
      return true;
    });
    KM_TRY(scanned);
    for (const auto& [member, x] : open) ++result[x.task].open;
  }
  return result;
}

} // namespace kernelmill::study
