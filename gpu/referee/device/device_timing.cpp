// A/B timing on a GPU, by a clock that the candidate cannot reach. Calls are made in rows, one set
// of buffers each. The time of a call is that of the row from the first sight of its contents until
// its outputs are seen, less what the baseline's rows show to be no calls', divided by the calls.
// Rows of a candidate are all long, and how long each is, nobody knows before it is over. Contents
// are fresh for every row, of several kinds, and all outputs are checked.
// docs/explanation/gpu-referee.md has the formula and why it holds.

#include <algorithm>
#include <cstdint>

#include "gpu/referee/device/clocked_rows.hpp"
#include "gpu/referee/device/pair_taking.hpp"
#include "gpu/referee/device/slots.hpp"
#include "gpu/referee/device/timed_rows.hpp"
#include "gpu/referee/device/timing_summary.hpp"
#include "gpu/referee/doubts.hpp"
#include "gpu/referee/kind_looks.hpp"
#include "gpu/referee/scheduling.hpp"
#include "gpu/referee/stopping.hpp"

namespace kernelmill {

namespace {

constexpr size_t other_clock_pairs = 5; // for information
constexpr size_t apart_pairs = 4;
constexpr size_t apart_in_doubt = 12;
constexpr int most_lengthened = 3;         // the last time by as much as there is
constexpr double least_gated_row = 0.6e-3; // seconds of calls, where a candidate shortened rows
constexpr int most_for_noise = 12;         // pairs
constexpr size_t most_confirming = 128;    // pairs of kinds that may be slower
constexpr double delayed_factor = 1.15;    // of contents, by a candidate whose launches wait

/// A row of a few calls.
struct looked_row {
  size_t kind = 0;
  std::optional<row_times> row; ///< nothing where it could not be timed by the clock that is paid
};

class device_timing {
public:
  device_timing(measured_run& run, const quiet_baseline& quiet)
      : run_(run), record_(run.record.timing), spec_(run.prepared.spec()), quiet_(quiet),
        timed_(run, quiet), plan_(
                                quiet.timed, [&run] { return run.next_order(); },
                                timed_.candidates().kinds().size() - quiet.timed) {
    taken_.paid = run.options.clock;
  }

  void measure() {
    record_.clock = "outside, rows less the baseline's intercept";
    if (auto fault = run_.choose_geometry(spec_.timed)) {
      run_.record.correct = false;
      run_.record.fault = *fault;
      return;
    }
    cores_apart cores{run_.parts.hardware.timed_cpus()};
    cores.hold(timed_.process().pid());
    cores.hold(timed_.baseline().pid());
    run_.candidate.forget();
    run_.prepared.arena()->gpu().rouse(); // it may have rested since the baseline was timed
    timed_.baseline().spin(true);
    try {
      if (warm_up()) time_all();
    } catch (const device_failure&) { // a candidate can provoke that, by taking all of the memory
      keep_until_ended();
      throw;
    }
    timed_.let_both_go_on();
    timed_.baseline().spin(false);
    timed_.candidates().note_spans(run_.record.spans);
    if (sound()) return summarize_rows(run_, quiet_, timed_, taken_);
    keep_until_ended();
  }

private:
  void keep_until_ended() {
    if (auto times = evaluate(taken_.paid)) record_.until_ended = shown_until_ended(times->kinds);
  }

  bool sound() const { return run_.record.correct && run_.record.fault.cls == fault_class::none; }

  // -- rows -----------------------------------------------------------------------------------

  // One row of each, checked; then how many sets make a row, and whether launches can wait.
  bool warm_up() {
    timed_.use(sets_for(quiet_.call.call, quiet_.call.call, timed_.sets()));
    row_times unused;
    if (!timed_.reference_row(timed_.order_of(paid_clock::call, 0, false), unused)) return false;
    if (!timed_.reference_is_right()) return false;
    row_times first;
    if (!timed_.candidate_row(timed_.order_of(paid_clock::call, 0, true), first)) return false;
    double mine = call_seconds(first, quiet_.call.intercept, 0);
    double theirs = quiet_.call.call;
    timed_.use(sets_for(std::min(mine, theirs), std::max(mine, theirs),
                        run_.prepared.arena()->timed_sets()));
    return !quiet_.device ? lose_gate("the baseline's launches do not wait for it") : try_gate();
  }

  // A library that waits for its own work, or launches where no gate is, has one time only.
  bool try_gate() {
    if (run_.program != nullptr) {
      timed_.limit_gated(run_.program->most_queued());
      return true;
    }
    int delayed = 0;
    for (int i = 0; i < pair_taking::gate_trials; ++i) {
      row_times row;
      if (!timed_.candidate_row(timed_.order_of(paid_clock::device, 0, true), row)) return false;
      bool delays = row.contents > delayed_factor * timed_.quiet_contents(0) + 2 * contents_slack;
      if (!timed_.gate_failed() && !delays) return true;
      if (delays && ++delayed == 2)
        return lose_gate("the GPU turns to the candidate's streams while they wait");
      if (timed_.gate_failed()) timed_.shorten_gated();
    }
    return lose_gate("the candidate waits within a call, or works on streams of its own");
  }

  bool lose_gate(const std::string& why) {
    taken_.gate_lost = true;
    if (!record_.note.empty()) record_.note += "; ";
    record_.note += "the GPU's work alone was not measured: " + why;
    // What another clock met counts for nothing: a candidate says when the gate is lost.
    if (taken_.paid == paid_clock::device) forget_rows();
    taken_.paid = paid_clock::call;
    timed_.forget_longer(); // streams that wait for each other behind a gate are no work
    return true;
  }

  // All begins anew where the gate is lost while a kind in doubt is timed, too.
  void time_all() {
    std::string reason;
    paid_clock clock{};
    do {
      reason.clear();
      if (!take_pairs(reason)) return;
      clock = taken_.paid;
      if (reason == hopeless) break;
      if (!confirm() || !confirm_beside()) return;
    } while (taken_.paid != clock);
    record_.note = reason + (record_.note.empty() ? "" : "; " + record_.note);
  }

  bool take_pairs(std::string& reason) {
    double started = now_seconds();
    for (size_t i = 0; reason.empty(); ++i) {
      auto clock = taken_.paid;
      for (size_t kind : plan_.checked_before(i))
        if (!check_kind(kind)) return false;
      if (taken_.paid == clock && !pair(clock, plan_.kind_of(i))) return false;
      if (taken_.paid != clock || lengthen()) {
        started = now_seconds();
        i = SIZE_MAX; // from the first pair on
        continue;
      }
      auto other = taken_.paid == paid_clock::call ? paid_clock::device : paid_clock::call;
      if (i < other_clock_pairs && !taken_.gate_lost && !pair(other, 0)) return false;
      // Each kind is to be there once, however narrow the interval is, and however long a candidate
      // took for the others.
      auto rule = run_.options.stopping;
      rule.all_met = i + 1 >= plan_.round();
      auto times = evaluate(taken_.paid);
      if (times) reason = stop_reason_by_kind(times->kinds, rule, now_seconds() - started);
      if (!reason.empty() || !run_.expired()) continue;
      reason = "the deadline of the evaluation";
      taken_.is_short = !rule.all_met;
    }
    return true;
  }

  // A candidate that was slow in its first calls and is fast now has rows too short to be timed
  // well: they are made longer, and what was measured is forgotten. True when that was so.
  bool lengthen() {
    const auto& pairs = taken_.paid_rows().pairs;
    if (pairs.empty()) return false;
    if (taken_.paid == paid_clock::device && timed_.is_gate_shortened() &&
        call_seconds(pairs.back().candidate, quiet_.device->intercept, 0) * timed_.fewest_gated() <
            least_gated_row)
      return lose_gate("launches wait only in rows too short to be timed");
    if (lengthened_ == most_lengthened) return false;
    double theirs = quiet_.call.call;
    double mine = call_seconds(pairs.back().candidate, quiet_.call.intercept, 0);
    unsigned sets = sets_for(std::min(mine, theirs), std::max(mine, theirs),
                             run_.prepared.arena()->timed_sets());
    if (2 * sets < 3 * timed_.sets()) return false;
    // Who takes just so long each time that rows grow a little would have short ones for good.
    bool is_last = ++lengthened_ == most_lengthened;
    timed_.use(is_last ? run_.prepared.arena()->timed_sets() : sets);
    forget_rows();
    return true;
  }

  void forget_rows() {
    for (auto& x : taken_.rows) x = {};
    taken_.disturbed = 0;
    timed_.forget_longer();
    looks_.clear();
  }

  // A kind that may be slower is timed until that is told, whatever the budget is.
  bool confirm() {
    auto clock = taken_.paid;
    if (!know_noise() || !time_slow_looks()) return false;
    for (size_t i = 0; i < most_confirming && !run_.expired(); ++i) {
      auto times = evaluate(taken_.paid);
      if (!times || times->kinds.empty() || taken_.paid != clock) return true;
      auto name = unsettled_kind(times->kinds);
      if (!name) return true;
      const auto& kinds = timed_.candidates().kinds();
      size_t kind = 0;
      while (kind + 1 < kinds.size() && kinds[kind].name != *name) ++kind;
      if (!pair(taken_.paid, kind)) return false;
    }
    return true;
  }

  // Rows that are left out as disturbed may have used up the time, and few are left then. Without
  // time for more nothing is known of any kind.
  bool know_noise() {
    auto clock = taken_.paid;
    for (int i = 0; i < most_for_noise && taken_.paid == clock; ++i) {
      auto times = evaluate(taken_.paid);
      if (!times || !needs_noise(times->kinds)) return true;
      if (run_.expired()) taken_.is_short = true;
      if (taken_.is_short) return true;
      if (!pair(taken_.paid, 0)) return false;
    }
    return true;
  }

  // Nobody is charged by a few rows for calls that run side by side, if there is time for more, and
  // nobody goes without.
  bool confirm_beside() {
    auto clock = taken_.paid;
    auto wants_more = [&] {
      bool few = run_.program == nullptr && taken_.paid_rows().apart.size() < apart_pairs;
      return few || seems_beside();
    };
    while (taken_.paid == clock && wants_more() && !run_.expired())
      if (!pair(taken_.paid, 0)) return false;
    return true;
  }

  bool seems_beside() const {
    const auto& rows = taken_.paid_rows();
    if (rows.apart.size() < apart_pairs || rows.apart.size() >= apart_in_doubt) return false;
    auto times = evaluate(taken_.paid);
    return times && times->most_beside > 0;
  }

  // A pair of each kind that was only checked and is slow there. Without time for it nothing is
  // known of that kind.
  bool time_slow_looks() {
    auto times = evaluate(taken_.paid);
    auto clock = taken_.paid;
    double usual = times && !times->kinds.empty() ? medians(times->kinds[0].blocks).candidate : 0;
    auto look_of = [&](const looked_row& x) {
      if (!x.row) return kind_look{x.kind, {}};
      // Work on contents before the clock is no way to be fast.
      double late = x.row->contents - 1.05 * timed_.quiet_contents(x.kind) - contents_slack;
      return kind_look{x.kind,
                       call_seconds(*x.row, times ? times->intercept : 0, std::max(0.0, late))};
    };
    std::vector<kind_look> seen;
    for (const auto& x : looks_) seen.push_back(look_of(x));
    auto kinds = slow_kinds(seen, usual, [&](size_t kind) -> std::optional<kind_look> {
      if (run_.expired()) return kind_look{kind, {}};
      auto row = look(kind);
      return row ? std::optional{look_of(*row)} : std::nullopt;
    });
    if (!kinds) return false;
    for (size_t kind : *kinds) {
      if (run_.expired()) taken_.is_short = true;
      if (taken_.is_short || taken_.paid != clock) return true;
      if (!pair(taken_.paid, kind)) return false;
    }
    return true;
  }

  // Where the gate failed in either, the rows say nothing of both.
  std::optional<made_pair> make_pair(paid_clock clock, size_t kind, fences between) {
    made_pair made;
    if (!timed_.long_rows(clock, kind, made.rows, between)) return std::nullopt;
    made.gate_held =
        clock != paid_clock::device || (!timed_.gate_failed() && !timed_.reference_was_forced());
    return made;
  }

  // A long row of each, and a short one of the baseline.
  bool pair(paid_clock clock, size_t kind) {
    auto& into = taken_.rows[clock == paid_clock::device];
    auto paid = taken_.paid; // another one once a gate is lost
    bool apart = kind == 0 && wants_apart(clock, into);
    bool first =
        apart && (run_.next_order() & 1) != 0; // nobody knows whether the next row is apart
    if (first && !pair_apart(clock, into)) return false;
    if (taken_.paid != paid) return true;
    if (!pair_as_it_comes(clock, kind, into)) return false;
    return !apart || first || taken_.paid != paid || pair_apart(clock, into);
  }

  // Device code has one stream, whose calls are apart in any case.
  bool wants_apart(paid_clock clock, const clocked_rows& rows) const {
    return run_.program == nullptr && clock == taken_.paid &&
           (rows.apart.size() < apart_pairs || seems_beside());
  }

  bool pair_as_it_comes(paid_clock clock, size_t kind, clocked_rows& into) {
    row_pair x;
    bool disturbed = false;
    auto make_undisturbed = [&] {
      return taken_.waits.take([&] { return make_pair(clock, kind, fences::none); }, quiet_.waited,
                               [&] { return run_.expired(); }, disturbed);
    };
    auto outcome = taking_.take(kind, into.pairs, make_undisturbed, x);
    if (outcome != pair_outcome::counts) return go_on_without(outcome);
    into.pairs.push_back(x);
    if (clock == taken_.paid) taken_.disturbed += disturbed ? 1 : 0;
    if (kind != 0) return true;
    into.baseline.push_back(x.reference);
    row_times short_row;
    for (int i = 0;
         i == 0 || (i < pairs_that_wait::most_taken && lost_its_core(short_row, quiet_.waited));
         ++i)
      if (!timed_.reference_row(timed_.order_of(clock, 0, false), short_row)) return false;
    if (timed_.reference_was_forced()) return forgive_gate();
    into.baseline.push_back(short_row);
    return true;
  }

  bool pair_apart(paid_clock clock, clocked_rows& into) {
    row_pair x;
    auto outcome = taking_.take_apart(
        clock == paid_clock::device, [&](fences between) { return make_pair(clock, 0, between); },
        x);
    if (outcome != pair_outcome::counts) return go_on_without(outcome);
    into.apart.push_back(x);
    return true;
  }

  bool go_on_without(pair_outcome outcome) {
    return outcome == pair_outcome::gate_lost && lose_gate("launches did not wait in all rows");
  }

  // What is wrong behind a gate is forgiven, wherever it was, only so often: the outputs may be
  // right without.
  bool forgive_gate() { return !taking_.fails() || lose_gate("launches did not wait in all rows"); }

  // A few calls on contents of a kind that is not timed, by the clock that blames. How many come,
  // nobody knows before. How long they take is looked at later.
  bool check_kind(size_t kind) {
    row_times row;
    if (!timed_.candidate_row(timed_.few_calls(paid_clock::call, kind), row)) return false;
    if (taken_.paid == paid_clock::call) {
      looks_.push_back({kind, row});
      return true;
    }
    auto seen = look(kind);
    if (seen && taken_.paid == paid_clock::device) looks_.push_back(*seen);
    return seen.has_value();
  }

  std::optional<looked_row> look(size_t kind) {
    row_times row;
    if (!timed_.candidate_row(timed_.few_calls(taken_.paid, kind), row)) return std::nullopt;
    if (taken_.paid != paid_clock::device || !timed_.gate_failed()) return looked_row{kind, row};
    return forgive_gate() ? std::optional{looked_row{kind, {}}} : std::nullopt;
  }

  std::optional<clocked_times> evaluate(paid_clock clock) const {
    return times_by(clock, taken_, timed_, quiet_);
  }

  measured_run& run_;
  timing_record& record_;
  const task& spec_;
  const quiet_baseline quiet_;
  timed_rows timed_;
  contents_plan plan_;
  rows_taken taken_;
  int lengthened_ = 0;
  pair_taking taking_;
  std::vector<looked_row> looks_; // at kinds that are checked and not timed
};

} // namespace

void measure_device_timing(measured_run& run) {
  const auto& quiet = run.prepared.quiet;
  if (!quiet) {
    run.record.fault = bad_baseline(run.prepared.spec(), "was not timed before the candidate came");
    return;
  }
  device_timing{run, *quiet}.measure();
}

} // namespace kernelmill
