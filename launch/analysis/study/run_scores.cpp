#include "launch/analysis/study/run_scores.hpp"

#include <algorithm>

#include "messages/judged.hpp"

namespace kernelmill::study {

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

void score_reader::add(wire::Record::Reader record) {
  if (record.isTurn()) add(record.getTurn());
  if (record.isEpisode()) add(record.getEpisode());
}

void score_reader::add(wire::TurnRecord::Reader turn) {
  auto episode = turn.getEpisode();
  auto& to = open_[{episode.getGroup(), episode.getMember()}];
  if (to.task.empty()) to.task = episode.getTask().cStr();
  if (turn.getTurn() < shared_turns_) return;
  auto verdict = turn.getVerdict();
  if (!is_judged(verdict)) return;
  ++to.judged;
  auto& x = to.score;
  if (is_paid(verdict) && (!x.reward || verdict.getReward() > *x.reward))
    x.reward = verdict.getReward();
  if (verdict.getOutcome() != wire::Outcome::ACCEPTED) return;
  x.correct = true;
  reporting::keep_best(x.best_speedup, reporting::counted_speedup(turn, shared_turns_));
}

void score_reader::add(wire::EpisodeRecord::Reader end) {
  auto episode = end.getEpisode();
  auto& to = result_[episode.getTask().cStr()];
  auto& x = open_[{episode.getGroup(), episode.getMember()}];
  if (end.getOutcome() == wire::Outcome::INFRASTRUCTURE || x.judged == 0)
    ++to.infrastructure;
  else
    to.episodes.push_back(x.score);
  open_.erase({episode.getGroup(), episode.getMember()});
}

run_scores score_reader::finish() {
  for (const auto& [name, x] : open_) ++result_[x.task].open;
  open_.clear();
  return std::move(result_);
}

expected<run_scores> read_scores(const store& from, const std::string& run, uint32_t shared_turns) {
  score_reader reader{shared_turns};
  auto scanned = from.scan_run(run, [&](wire::Record::Reader record) {
    reader.add(record);
    return true;
  });
  KM_TRY(scanned);
  return reader.finish();
}

} // namespace kernelmill::study
