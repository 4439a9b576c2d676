#include "gpu/referee/device/timing_summary.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/disturbed_rows.hpp"
#include "gpu/referee/device/row_findings.hpp"
#include "gpu/referee/doubts.hpp"
#include "gpu/referee/paid_kinds.hpp"

namespace kernelmill {

namespace {

// Deviation of the logarithm of a speedup between processes that run the same code: their memory
// lies elsewhere (copies of the baselines on an H200).
constexpr double device_process_spread = 0.008;
constexpr double plainly_withheld = 20e-6; // seconds of a row
constexpr double soonest_relearned = 60;   // seconds
constexpr double most_forgiven = 1.3; // of how slow a candidate looks: it may have a part in it

both_seconds of_sides(const std::vector<timed_block>& blocks,
                      const std::function<double(std::vector<double>)>& middle) {
  std::vector<double> candidate;
  std::vector<double> reference;
  for (const auto& x : blocks) {
    candidate.push_back(x.candidate[0]);
    reference.push_back(x.reference[0]);
  }
  return {middle(std::move(candidate)), middle(std::move(reference))};
}

class timing_summary {
public:
  timing_summary(measured_run& run, const quiet_baseline& quiet, const timed_rows& timed,
                 const rows_taken& taken)
      : run_(run), record_(run.record.timing), quiet_(quiet), timed_(timed), taken_(taken) {}

  void write() {
    auto times = times_by_clock(taken_.paid);
    if (!times || taken_.paid_rows().pairs.empty()) return;
    if (taken_.is_short) {
      record_.note += "; not measured, because not all kinds of contents were timed by then";
      return;
    }
    const auto& pairs = taken_.paid_rows().pairs;
    auto again =
        fmt::format("{} pairs were disturbed by other programs", taken_.waits.taken_again());
    record_.baseline.calls = taken_.waits.made();
    record_.baseline.disturbed = taken_.waits.baseline_waited();
    if (2 * taken_.disturbed > pairs.size()) {
      auto seconds = medians(times->kinds[0].blocks);
      record_.baseline.behind = behind(seconds, *times);
      record_.note = "not measured, because the machine is too busy: " + again;
      return;
    }
    std::vector<row_times> candidate;
    std::vector<row_times> reference; // as long: samples of more calls take longer
    for (const auto& x : pairs) {
      candidate.push_back(x.candidate);
      reference.push_back(x.reference);
    }
    look_for_lateness(run_, candidate, reference);
    look_for_work_while_stopped(run_, timed_.worked_while_stopped());
    for (const auto& longer : {timed_.candidate_longer(), timed_.reference_longer()})
      look_for_background_work(run_, longer, timed_.quiet_contents(0));
    auto paid = pay_settled(times->kinds);
    record_.measured = true;
    for (const auto& x : times->kinds) record_.baseline.blocks += x.blocks.size();
    record_.baseline.behind = behind({paid.candidate_seconds, paid.reference_seconds}, *times);
    record_.baseline.half_width = baseline_half_width(times->kinds);
    record_.reference_seconds = paid.reference_seconds;
    record_.candidate_seconds = paid.candidate_seconds;
    record_.speedup =
        widened(paid.speedup, std::hypot(spread_of(*times, pairs), device_process_spread));
    std::vector<double> calls;
    for (const auto& x : candidate) calls.push_back(x.calls);
    for (double x : calls) record_.samples += static_cast<uint32_t>(x);
    note_kinds(*times, paid);
    note_apart(run_.record, {times->apart, times->beside, times->cost}, paid.candidate_seconds);
    note_fixed(*times);
    note_withheld(*times, pairs);
    note_most_beside(*times, paid.candidate_seconds);
    note_both_clocks();
    compare_with_roofline(run_, median(calls));
    note_conditions(run_.prepared.arena()->gpu(), run_.record);
    if (taken_.waits.taken_again() > 0) record_.note += "; " + again;
    if (times->share < 1)
      record_.note +=
          "; the baseline was slower than before the candidate came, and is not believed";
    if (!run_.prepared.has_baseline_arena())
      record_.note += "; the baseline shares the candidate's buffers, for want of memory";
  }

private:
  // What is withheld makes a candidate look slower than it is.
  double behind(const both_seconds& x, const clocked_times& times) const {
    double withheld = most_withheld(times, taken_.paid_rows().pairs);
    return x.candidate / x.reference / std::min(withheld, most_forgiven);
  }

  void note_kinds(const clocked_times& times, const paid_speedup& paid) {
    std::string each;
    for (size_t kind = 0; kind < times.kinds.size(); ++kind) {
      const auto& x = times.kinds[kind];
      if (x.blocks.empty()) continue;
      auto seconds = medians(x.blocks);
      kind_time entry{x.name, seconds.candidate, seconds.reference, 0};
      for (const auto& pair : taken_.paid_rows().pairs)
        if (pair.kind == kind) entry.calls += pair.candidate.calls;
      each += fmt::format("{}{} {:.6f} of {:.6f} ms", each.empty() ? "" : ", ", x.name,
                          seconds.candidate * 1e3, seconds.reference * 1e3);
      record_.kinds.push_back(std::move(entry));
    }
    if (!paid.slowest) return;
    run_.find("depends_on_contents", severity::warning,
              fmt::format("{:.2f} times slower on contents of the kind {} than on others, and paid "
                          "for that kind; candidate and reference by kind: {}",
                          paid.times_slower, *paid.slowest, each));
  }

  void note_fixed(const clocked_times& times) {
    const auto& quiet = taken_.paid == paid_clock::device ? *quiet_.device : quiet_.call;
    auto& into = run_.record.conditions;
    into.push_back({"row_fixed", times.intercept * 1e3, "ms"});
    into.push_back({"row_fixed_quiet", quiet.intercept * 1e3, "ms"});
    if (taken_.paid == paid_clock::call)
      into.push_back({"row_launch", times.line.launch * 1e3, "ms"});
  }

  // Quiet rows tell which it is: the next candidate of this task has new ones, but not each.
  void note_withheld(const clocked_times& times, const std::vector<row_pair>& pairs) {
    record_.speedup.high *= most_withheld(times, pairs);
    if (times.not_subtracted() < plainly_withheld) return;
    if (now_seconds() - run_.prepared.quiet->when > soonest_relearned)
      run_.prepared.quiet->when = -std::numeric_limits<double>::infinity();
    record_.note += fmt::format("; rows of the baseline take {:.3f} ms more besides calls than "
                                "before the candidate came, which nobody is paid for",
                                times.not_subtracted() * 1e3);
  }

  void note_most_beside(const clocked_times& times, double seconds) {
    double more = times.most_beside - times.beside;
    if (more <= 0) return;
    record_.speedup.low *= seconds / (seconds + more);
    record_.note += fmt::format(
        "; {:.6f} ms a call may lie beside other calls, which nobody is paid for", more * 1e3);
  }

  void note_both_clocks() {
    auto own = [&](paid_clock clock) {
      auto times = times_by_clock(clock);
      if (!times) return both_seconds{};
      const auto& blocks = times->kinds[0].blocks;
      // Of the other clock there are a few rows, and nothing is paid by them. What a runner's
      // events are held against is a median, as theirs.
      bool informs = clock != taken_.paid && run_.program == nullptr;
      return informs ? of_sides(blocks, usual_of_few) : medians(blocks);
    };
    record_.by_call = own(paid_clock::call);
    record_.by_device = taken_.gate_lost ? record_.by_call : own(paid_clock::device);
    if (run_.program == nullptr || taken_.gate_lost) return;
    std::vector<row_times> gated;
    for (const auto& x : taken_.rows[1].pairs)
      if (x.kind == 0) gated.push_back(x.candidate);
    compare_clocks(run_, gated, record_.by_device.candidate);
  }

  std::optional<clocked_times> times_by_clock(paid_clock clock) const {
    return times_by(clock, taken_, timed_, quiet_);
  }

  measured_run& run_;
  timing_record& record_;
  const quiet_baseline& quiet_;
  const timed_rows& timed_;
  const rows_taken& taken_;
};

} // namespace

both_seconds medians(const std::vector<timed_block>& blocks) {
  return of_sides(blocks, median);
}

std::optional<clocked_times> times_by(paid_clock clock, const rows_taken& taken,
                                      const timed_rows& timed, const quiet_baseline& quiet) {
  bool device = clock == paid_clock::device;
  if (device && !quiet.device) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& kind : timed.candidates().kinds()) names.push_back(kind.name);
  return times_of(taken.rows[device], device ? *quiet.device : quiet.call, names,
                  [&](size_t kind) { return 1.05 * timed.quiet_contents(kind) + contents_slack; });
}

void summarize_rows(measured_run& run, const quiet_baseline& quiet, const timed_rows& timed,
                    const rows_taken& taken) {
  timing_summary{run, quiet, timed, taken}.write();
}

} // namespace kernelmill
