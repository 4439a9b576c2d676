#include "gpu/referee/device/timed_rows.hpp"

#include <algorithm>
#include <optional>

#include "gpu/referee/device/row_findings.hpp"
#include "gpu/referee/device/slots.hpp"

namespace kernelmill {

timed_rows::timed_rows(measured_run& run, const quiet_baseline& quiet)
    : run_(run), quiet_(quiet),
      candidate_rows_(run.prepared, *run.prepared.arena(), run.record.seed, "timed",
                      [&run] { return run.next_order(); }),
      reference_rows_(run.prepared, run.prepared.baseline_arena(), run.record.seed, "baseline",
                      [&run] { return run.next_order(); }) {}

void timed_rows::use(unsigned sets) {
  candidate_rows_.use(sets);
  reference_rows_.use(sets);
}

row_order timed_rows::order_of(paid_clock clock, size_t kind, bool is_long) {
  unsigned sets = sets_by(clock);
  row_order result;
  result.clock = clock;
  result.kind = kind;
  result.calls = is_long ? long_calls(sets, run_.next_order()) : short_calls(sets);
  result.limit_ms = run_.call_limit();
  return result;
}

row_order timed_rows::few_calls(paid_clock clock, size_t kind) {
  auto result = order_of(clock, kind, false);
  unsigned most = look_calls(sets_by(clock));
  result.calls = most - static_cast<unsigned>(run_.next_order() % (most / 2 + 1));
  return result;
}

// Who is not timed does not run. Both have one core, where each would look for its next command
// while the other works.
// However little time a candidate left, its baseline is not late: the task would be blamed.
bool timed_rows::reference_row(row_order order, row_times& into) {
  if (!process().stopped() && process().stop() == standing::spawning)
    run_.find("background_work", severity::critical, "it started processes without end");
  baseline().go_on();
  order.limit_ms = call_deadline_ms;
  std::optional<row_times> made;
  auto waits = [&](unsigned calls) {
    order.calls = calls;
    made = reference_rows_.make({baseline()}, order);
    return !made || order.clock != paid_clock::device || !reference_rows_.gate_was_forced();
  };
  // Fences take places of the queue, too, and say nothing of other rows.
  bool is_long = !order.apart && order.calls > short_calls(room_.of(sets()));
  reference_was_forced_ = !room_.fit(order.calls, is_long, waits);
  if (!made) return blame_ending();
  into = *made;
  note_contents(reference_longer_, order.kind, into.contents);
  return true;
}

bool timed_rows::candidate_row(const row_order& order, row_times& into) {
  baseline().stop();
  if (run_.program == nullptr && process().stopped())
    worked_while_stopped_.push_back(process().worked_while_stopped());
  process().go_on();
  auto made = candidate_rows_.make({process(), run_.program}, order);
  if (!made) {
    run_.record.correct = false;
    if (const auto& ending = process().ending()) run_.record.fault = ending->fault;
    return false;
  }
  into = *made;
  note_contents(candidate_longer_, order.kind, into.contents);
  bool gated = order.clock == paid_clock::device && run_.program == nullptr;
  auto found = candidate_rows_.audit(order.kind < quiet_.timed ? 1 : wide_bound);
  if (!note_audit(
          run_, [&] { return candidate_rows_.describe(found); }, found, gated))
    return false;
  if (gated) gate_failed_ = found.bad > 0 || found.late > 0 || candidate_rows_.gate_was_forced();
  return true;
}

void timed_rows::let_both_go_on() {
  process().go_on();
  baseline().go_on();
}

bool timed_rows::reference_is_right() {
  auto found = reference_rows_.audit();
  return found.bad == 0 || blame_task("is wrong: " + reference_rows_.describe(found));
}

bool timed_rows::long_rows(paid_clock clock, size_t kind, row_pair& into, fences between) {
  into.kind = kind;
  bool reference_first = (run_.next_order() & 1) != 0;
  for (bool reference : {reference_first, !reference_first}) {
    auto order = order_of(clock, kind, true);
    order.apart = between != fences::none;
    if (between == fences::half_calls) order.calls = (order.calls + 1) / 2;
    if (!(reference ? reference_row(order, into.reference) : candidate_row(order, into.candidate)))
      return false;
  }
  return true;
}

double timed_rows::quiet_contents(size_t kind) const {
  double sets = static_cast<double>(candidate_rows_.sets()) / std::max(quiet_.sets, 1u);
  return kind < quiet_.contents.size() ? quiet_.contents[kind] * sets : 0;
}

void timed_rows::note_contents(std::vector<double>& into, size_t kind, double seconds) const {
  into.push_back(seconds - quiet_contents(kind));
}

void timed_rows::forget_longer() {
  candidate_longer_.clear();
  reference_longer_.clear();
}

bool timed_rows::blame_task(const std::string& cause) {
  run_.record.fault = bad_baseline(run_.prepared.spec(), cause);
  return false;
}

bool timed_rows::blame_ending() {
  run_.record.fault = bad_baseline(run_.prepared.spec(), "ended", baseline().ending()->fault);
  return false;
}

} // namespace kernelmill
