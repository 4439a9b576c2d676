#include "gpu/referee/batch_record.hpp"

#include <fmt/format.h>

#include "gpu/referee/timed_pairs.hpp"

namespace kernelmill {

namespace {

// Medians of a call on each pattern that had batches of its own.
void write_patterns(const timing::controller& control, const timing::paid_result& paid,
                    const timing::calibration& before, const std::vector<std::string>& patterns,
                    timing_record& into) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    std::vector<timing::pair_times> times;
    uint32_t calls = 0;
    for (const auto& x : control.pairs()) {
      bool alone = x.order.patterns.size() == 1 && x.order.patterns[0] == i;
      if (!alone || x.order.form == timing::batch_form::single) continue;
      times.push_back(timing::times_of(x, paid.besides, before));
      calls += x.candidate.calls;
    }
    if (auto found = timing::result_of(times))
      into.kinds.push_back({patterns[i], found->candidate_seconds, found->baseline_seconds, calls});
  }
}

void write_disturbed(const timing::controller& control, baseline_record& into) {
  into.disturbed = static_cast<uint32_t>(control.retaken());
  into.calls = static_cast<uint32_t>(control.pairs().size()) + into.disturbed;
}

} // namespace

void write_too_few(const timing::controller& control, timing_record& into) {
  write_disturbed(control, into.baseline);
  into.note = "not measured: the evaluation's time was over before all batches were made";
}

void write_batches(const timing::controller& control, const timing::calibration& before,
                   const std::vector<std::string>& patterns, evaluation_record& into) {
  auto& timing = into.timing;
  write_disturbed(control, timing.baseline);
  auto paid = control.result();
  if (!paid) {
    timing.note = "not measured: other programs disturbed all batches of the task's own inputs";
    return;
  }
  timing.measured = true;
  timing.speedup = paid->paid.speedup;
  timing.reference_seconds = paid->paid.baseline_seconds;
  timing.candidate_seconds = timing.reference_seconds / timing.speedup.estimate;
  timing.baseline.blocks = paid->paid.pairs;
  timing.baseline.behind = timing.candidate_seconds / timing.reference_seconds;
  for (const auto& x : control.pairs()) timing.samples += x.candidate.calls;
  write_patterns(control, *paid, before, patterns, timing);
  timing.pairs = deciding_pairs(control.pairs(), *paid, before);
  if (before.besides.fixed > 0) {
    into.conditions.push_back({"batch_overhead", paid->besides.fixed * 1e3, "ms"});
    into.conditions.push_back({"batch_overhead_before", before.besides.fixed * 1e3, "ms"});
  }
  into.conditions.push_back({"batches", static_cast<double>(control.pairs().size()), ""});
  if (paid->single) into.conditions.push_back({"speedup_alone", paid->single->estimate, ""});
  auto warn = [&](const char* rule, std::string evidence) {
    into.findings.push_back({rule, severity::warning, std::move(evidence)});
  };
  if (paid->slow_pattern)
    warn("depends_on_contents", fmt::format("{:.2f} times slower on the input pattern {} than on "
                                            "others, and rewarded for that pattern",
                                            paid->times_slower, patterns[*paid->slow_pattern]));
  if (paid->overlapping)
    warn("calls_overlap",
         fmt::format("calls run side by side: kept apart they show a speedup of {:.3f}",
                     *paid->overlapping));
  else if (paid->limited_by_single)
    warn("calls_overlap", fmt::format("calls alone show a speedup of {:.3f}, which is rewarded",
                                      timing.speedup.estimate));
  std::string note = control.reason();
  if (paid->baseline_slower)
    note += "; the baseline was slower than before the candidate came, and is not believed";
  if (control.retaken() > 0)
    note += fmt::format("; {} pairs were disturbed by other programs", control.retaken());
  timing.note = note + (timing.note.empty() ? "" : "; " + timing.note);
}

} // namespace kernelmill
