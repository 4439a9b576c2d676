#include "gpu/referee/device/pair_taking.hpp"

namespace kernelmill {

namespace {

constexpr int retakes = 2; // of rows that are longer than those with the task's own contents
constexpr unsigned fewest_for_a_line = 4; // of which a short row has one call, and a long one three

} // namespace

std::optional<made_pair>
pairs_that_wait::take(const std::function<std::optional<made_pair>()>& make, double usual,
                      const std::function<bool()>& expired, bool& disturbed) {
  for (int i = 1;; ++i) {
    auto x = make();
    if (!x) return std::nullopt;
    ++made_;
    bool theirs = lost_its_core(x->rows.reference, usual);
    bool excused = excused_.excuses(theirs, lost_its_core(x->rows.candidate, usual));
    baseline_waited_ += theirs ? 1 : 0;
    disturbed = theirs || excused;
    if (!disturbed || !x->gate_held || i == most_taken || expired()) return x;
    ++taken_again_;
  }
}

bool queue_room::fit(unsigned calls, bool is_long, const std::function<bool(unsigned)>& waits) {
  if (waits(calls) || waits(calls)) return true;
  bool all_waited = false;
  for (int i = 2; i < gate_tries && !all_waited; ++i) {
    calls = fewer_calls(calls);
    all_waited = waits(calls);
  }
  if (is_long) limit(std::max(calls + 1, fewest_for_a_line));
  return all_waited;
}

pair_outcome pair_taking::take(size_t kind, const std::vector<row_pair>& pairs,
                               const std::function<std::optional<made_pair>()>& make,
                               row_pair& into) {
  do {
    auto x = make();
    if (!x) return pair_outcome::ended;
    for (int i = 0; kind != 0 && i < retakes && x->gate_held && is_longer(x->rows, pairs); ++i) {
      auto again = make();
      if (!again) return pair_outcome::ended;
      if (again->gate_held) keep_shorter(x->rows, again->rows);
      x->gate_held = again->gate_held;
    }
    into = x->rows;
    if (x->gate_held) return pair_outcome::counts;
  } while (!fails());
  return pair_outcome::gate_lost;
}

pair_outcome pair_taking::take_apart(bool is_gated,
                                     const std::function<std::optional<made_pair>(fences)>& make,
                                     row_pair& into) {
  auto make_or_halve = [&] {
    auto x = make(is_gated ? fences_ : fences::all_calls);
    if (!x || x->gate_held || fences_ == fences::half_calls) return x;
    fences_ = fences::half_calls;
    return make(fences_);
  };
  return take(0, {}, make_or_halve, into);
}

} // namespace kernelmill
