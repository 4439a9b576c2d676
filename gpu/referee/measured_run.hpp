#pragma once

// INTERNAL to gpu/referee: what the phases of one evaluation share.

#include <algorithm>

#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/evaluation.hpp"

namespace kernelmill {

class program_slot;

inline constexpr int call_deadline_ms = 2'000;

/// Times a bound, for kinds on which the baseline is within that bound and not within a fifth of
/// it: an honest candidate is as far from it as from the bounds of the others.
inline constexpr double wide_bound = 5;

/// Notes how long the parts of an evaluation take.
class span_clock {
public:
  explicit span_clock(evaluation_record& record) : record_(record) {}

  void lap(const char* name) {
    double now = now_seconds();
    record_.spans.push_back({name, now - mark_});
    mark_ = now;
  }

private:
  evaluation_record& record_;
  double mark_ = now_seconds();
};

/// splitmix64: the draws of a row's order, from a state that was a part of a seed.
inline uint64_t next_draw(uint64_t& state) noexcept {
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// One candidate under judgement: its slot, the contents, and the record that grows.
struct measured_run {
  referee_parts parts;
  prepared_task& prepared;
  const evaluation_options& options;
  slot& candidate;
  workload work;
  evaluation_record& record;
  program_slot* program = nullptr; ///< the candidate, when it is device code
  uint64_t order = 0; ///< state of the generator that draws the order in which outputs are taken

  uint64_t next_order() noexcept { return next_draw(order); }

  /// Milliseconds that the next call may take.
  int call_limit() const noexcept {
    double left = (deadline() - now_seconds()) * 1e3;
    return static_cast<int>(std::clamp(left, 1.0, double{call_deadline_ms}));
  }
  bool expired() const noexcept { return now_seconds() >= deadline(); }

  /// What the machine took away is given back.
  double deadline() const noexcept { return options.deadline + candidate.process().lost_seconds(); }

  void find(std::string rule, severity level, std::string evidence) {
    for (const auto& x : record.findings)
      if (x.rule == rule) return; // once each
    record.findings.push_back({std::move(rule), level, std::move(evidence)});
  }

  /// Delivers, calls and looks at guards and late bytes. False when the process ended or the
  /// candidate wrote out of bounds: the record then holds the fault.
  bool call_candidate(bool cold, call_measure& measure);

  /// Makes the launches of device code those of a shape. Nothing, or the candidate's fault.
  std::optional<error> choose_geometry(const task_case& which);

  /// Before a hidden case or a timed row: what is printed from now on is not quoted. A copy is
  /// taken because the process may write over what it printed before.
  void seal();

  /// Lets the process go on, and looks once more at the outputs of the last call, a moment later.
  void look_for_late_writes();

  /// What a process does when nobody called it: by then it had time to come to rest.
  void look_for_background_work();
};

/// True when every case passed.
bool check_cases(measured_run& run);

/// Interleaves candidate and baseline; fills record.timing.
void measure_timing(measured_run& run, double overhead_seconds);

/// "Failed to time task X: its baseline CAUSE", of class configuration.
error bad_baseline(const task& x, const std::string& cause);

/// The same where the baseline's process ended, or did not load: the machine's fault stays one.
error bad_baseline(const task& x, const std::string& what, const error& why);

/// Whether the task's baseline is right in this slot now: in its smallest case, and where `timed`
/// says so at the timed shape. REQUIRES: the candidate is gone.
bool control_works(referee_parts parts, prepared_task& prepared, bool timed);

/// Decides whose fault it was that ended the judgement of a candidate that had been loaded;
/// `before` is of the moment when it began. REQUIRES: the candidate was killed.
void settle_blame(referee_parts parts, prepared_task& prepared, evaluation_record& record,
                  const memory_kills& before);

/// Chooses the input patterns that timed calls of a task have, unless that is done: the task's
/// own, and those on which the baseline is within its bounds. References bound sums by what
/// rounding does to terms that differ, and at the timed shape not all inputs are such. Nothing, or
/// the task's fault. REQUIRES: the baseline is running; a CPU slot.
std::optional<error> choose_patterns(measured_run& run);

/// Times the candidate on a CPU. `alone`: seconds of an empty call before it was there.
/// REQUIRES: the baseline is running.
void measure_host(measured_run& run, double alone);

/// Counts what some calls at the timed shape do. Their outputs are not looked at.
void count_calls(measured_run& run);

} // namespace kernelmill
