#include "launch/analysis/report/speedups.hpp"

#include <cmath>
#include <string_view>

#include "launch/analysis/report/metrics.hpp"
#include "messages/base/json_value.hpp"
#include "messages/copied.hpp"
#include "storage/lineage/fork.hpp"

namespace kernelmill::reporting {

namespace {

using json = nlohmann::ordered_json;

std::pair<uint32_t, uint32_t> place_in_run(wire::EpisodeRef::Reader x) {
  return {x.getGroup(), x.getMember()};
}

} // namespace

measured_speedup of_interval(wire::Interval::Reader x) {
  return {x.getEstimate(), x.getLow(), x.getHigh()};
}

expected<uint32_t> shared_turns_of(const run_directory& run) {
  auto fork = fork_of(run);
  KM_TRY(fork);
  return *fork ? (*fork)->turns : 0;
}

bool passes(wire::Verdict::Reader x, std::string_view gate) {
  for (auto one : x.getGates())
    if (gate == one.getName().cStr()) return one.getStatus() == wire::GateStatus::PASS;
  return false;
}

// Of a turn that was restored or imported, the outcome may be all that is known of its gates.
bool is_timed(wire::TurnRecord::Reader x) {
  auto verdict = x.getVerdict();
  bool correct = verdict.getOutcome() == wire::Outcome::ACCEPTED || passes(verdict, "correctness");
  return correct && !is_unchanged(verdict) &&
         x.getFacts().getEvaluation().getTiming().getMeasured();
}

std::optional<measured_speedup> counted_speedup(wire::TurnRecord::Reader turn,
                                                uint32_t shared_turns) {
  auto s = turn.getFacts().getEvaluation().getTiming().getSpeedup();
  bool counts = turn.getTurn() >= shared_turns && is_timed(turn) && s.getEstimate() > 0 &&
                turn.getVerdict().getOutcome() == wire::Outcome::ACCEPTED;
  if (!counts) return std::nullopt;
  return of_interval(s);
}

bool keep_best(std::optional<measured_speedup>& best, const std::optional<measured_speedup>& x) {
  if (!x || (best && !(x->low > best->low))) return false;
  best = x;
  return true;
}

json to_json(const std::optional<measured_speedup>& x) {
  if (!x) return nullptr;
  return {{"estimate", x->estimate}, {"low", x->low}, {"high", x->high}};
}

json lower_json(const std::optional<measured_speedup>& x) {
  return x ? json(x->low) : json(nullptr);
}

std::optional<double> geomean_speedup(std::span<const double> estimates) {
  return geometric_mean(estimates);
}

bool speedup_figures::add(wire::TurnRecord::Reader turn) {
  auto counted = counted_speedup(turn, shared_turns_);
  if (!counted) return false;
  auto [kept, is_first] = open_.emplace(place_in_run(turn.getEpisode()), *counted);
  if (!is_first && counted->low > kept->second.low) kept->second = *counted;
  return keep_best(best_, counted);
}

void speedup_figures::add(wire::EpisodeRecord::Reader end) {
  auto found = open_.find(place_in_run(end.getEpisode()));
  if (found == open_.end()) return;
  if (end.getOutcome() != wire::Outcome::INFRASTRUCTURE)
    estimates_.push_back(found->second.estimate);
  open_.erase(found);
}

} // namespace kernelmill::reporting
