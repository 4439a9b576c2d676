#include "gpu/referee/not_timed.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gpu/timing/controller.hpp"

namespace kernelmill {

namespace {

// Fewer say too little: two warm up, each kind is met, and doubts are settled.
constexpr uint32_t fewest_calls = 4;
// Below this, intervals are wide because blocks are few, and a slow candidate makes them few.
constexpr size_t fewest_blocks_to_say = 6;

// Who looks that slow, also where the machine is busy, shall not be rid of it.
constexpr double far_behind = 2;

// A ratio varies by two times that vary alike; each alone makes its interval that much narrower.
bool is_noisy(const baseline_record& x, double widest) {
  return x.blocks >= fewest_blocks_to_say && x.half_width > widest / std::sqrt(2.0);
}

bool says_nothing(const speedup_interval& x, double widest) {
  bool wide = !(x.relative_half_width() <= widest); // also where that is no number
  return wide && !(x.high < 1);
}

// "; NOTE" without that the interval of the pairs was narrow: what is left of it says nothing.
std::string further(std::string note) {
  if (note.starts_with(timing::narrow_enough)) {
    note.erase(0, std::string_view{timing::narrow_enough}.size());
    if (note.starts_with("; ")) note.erase(0, 2);
  }
  return note.empty() ? note : "; " + note;
}

} // namespace

untimed whose_doing(const baseline_record& baseline, double widest) {
  if (baseline.behind > far_behind) return untimed::candidate;
  bool disturbed = baseline.calls >= fewest_calls && 2 * baseline.disturbed >= baseline.calls;
  return disturbed || is_noisy(baseline, widest) ? untimed::machine : untimed::candidate;
}

void settle_untimed(evaluation_record& record, double widest) {
  auto& timing = record.timing;
  if (!record.correct || record.fault.cls != fault_class::none) return;
  if (timing.measured) {
    const auto& x = timing.speedup;
    if (!says_nothing(x, widest)) return;
    timing.measured = false;
    timing.note =
        fmt::format("not timed: a speedup from {:.2f} to {:.2f} says nothing ({} calls){}", x.low,
                    x.high, timing.samples, further(timing.note));
  }
  timing.why_not = whose_doing(timing.baseline, widest);
  timing.speedup = {};
  timing.candidate_seconds = timing.reference_seconds = 0;
  timing.by_call = timing.by_device = {};
}

} // namespace kernelmill
