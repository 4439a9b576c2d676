#include "gpu/referee/device/batch_timing.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/referee/batch_record.hpp"
#include "gpu/referee/device/batches.hpp"
#include "gpu/referee/device/row_findings.hpp"
#include "gpu/referee/device/slots.hpp"
#include "gpu/referee/scheduling.hpp"
#include "gpu/timing/controller.hpp"
#include "gpu/timing/thresholds.hpp"

namespace kernelmill {

namespace {

constexpr int queue_tries = 4;

class batch_timing final : timing::batch_maker {
public:
  batch_timing(measured_run& run, const calibrated_baseline& known)
      : run_(run), record_(run.record.timing), known_(known),
        candidate_(run.prepared, *run.prepared.arena(), run.candidate.process(), run.program,
                   run.record.seed, known.kinds, [&run] { return run.next_order(); }),
        baseline_(run.prepared, run.prepared.baseline_arena(), run.prepared.baseline()->process(),
                  nullptr, run.record.seed, known.kinds, [&run] { return run.next_order(); }) {
    if (known.direct) baseline_.launch_directly();
    if (run.options.clock == paid_clock::call) candidate_.launch_directly();
  }

  void measure() {
    record_.clock = "outside, queued batches less the baseline's overhead";
    if (auto fault = run_.choose_geometry(run_.prepared.spec().timed)) {
      run_.record.correct = false;
      run_.record.fault = *fault;
      return;
    }
    cores_apart cores{run_.parts.hardware.timed_cpus()};
    cores.hold(run_.candidate.process().pid());
    cores.hold(run_.prepared.baseline()->process().pid());
    run_.candidate.forget();
    run_.prepared.arena()->gpu().rouse();
    run_.prepared.baseline()->process().spin(true);
    if (warm_up()) time_all();
    run_.candidate.process().go_on();
    run_.prepared.baseline()->process().go_on();
    run_.prepared.baseline()->process().spin(false);
    candidate_.note_spans(run_.record.spans);
  }

private:
  bool warm_up() {
    candidate_.use(known_.sets);
    baseline_.use(known_.sets);
    timing::batch_sample x;
    if (!make(timing::batch_side::candidate, {}, 0, x)) return false;
    auto besides = known_.before.besides;
    double mine = besides.calls(x) / std::max(x.calls, 1u);
    call_ = std::min(mine, known_.before.call);
    unsigned most = run_.prepared.arena()->timed_sets();
    auto sets =
        std::clamp(static_cast<unsigned>(timing::batch_seconds / call_), std::min(4u, most), most);
    sets = std::min(sets, std::max(known_.sets * timing::most_longer, 4u));
    candidate_.use(sets);
    baseline_.use(sets);
    // The fill of other lengths takes as much for each set.
    before_ = known_.before;
    for (double& seconds : before_.fills)
      seconds *= static_cast<double>(sets) / std::max(known_.sets, 1u);
    return true;
  }

  void time_all() {
    timing::timing_wish wish;
    wish.patterns = known_.timed;
    wish.half_width = run_.options.half_width;
    wish.own_streams = run_.program == nullptr;
    wish.call = call_;
    wish.draw = [this] { return run_.next_order(); };
    timing::controller control{*this, wish, before_};
    auto end = control.run();
    if (end == timing::timing_end::over) return;
    if (end == timing::timing_end::short_of_time) return write_too_few(control, record_);
    if (!check_unfit()) return;
    write(control);
  }

  // Patterns that are checked and not timed.
  bool check_unfit() {
    timing::batch_sample x;
    for (size_t kind = known_.timed; kind < known_.kinds.size(); ++kind)
      if (!make(timing::batch_side::candidate, {timing::batch_form::single, {kind}}, 1'000 + kind,
                x))
        return false;
    return true;
  }

  bool make(timing::batch_side side, const timing::batch_order& order, size_t number,
            timing::batch_sample& into) override {
    bool is_candidate = side == timing::batch_side::candidate;
    return is_candidate ? make_candidate(order, number, into) : make_baseline(order, number, into);
  }

  bool make_baseline(const timing::batch_order& order, size_t number, timing::batch_sample& into) {
    auto& candidate = run_.candidate.process();
    if (!candidate.stopped() && candidate.stop() == standing::spawning)
      run_.find("background_work", severity::critical, "it started processes without end");
    auto& process = run_.prepared.baseline()->process();
    process.go_on();
    for (int i = 0; i < queue_tries; ++i) {
      auto outcome = baseline_.make(order, number, call_deadline_ms, into);
      if (outcome == device_batches::outcome::made) return true;
      if (outcome == device_batches::outcome::not_queued) continue;
      run_.record.fault = bad_baseline(run_.prepared.spec(), "ended", process.ending()->fault);
      return false;
    }
    into.disturbed = true;
    return true;
  }

  bool make_candidate(const timing::batch_order& order, size_t number, timing::batch_sample& into) {
    run_.prepared.baseline()->process().stop();
    auto& process = run_.candidate.process();
    process.go_on();
    for (int i = 0;; ++i) {
      auto outcome = candidate_.make(order, number, run_.call_limit(), into);
      if (outcome == device_batches::outcome::ended) {
        run_.record.correct = false;
        if (const auto& ending = process.ending()) run_.record.fault = ending->fault;
        return false;
      }
      if (outcome == device_batches::outcome::not_queued) {
        if (i >= queue_tries) go_direct("it waits for the GPU within a call");
        continue;
      }
      auto found = candidate_.audit(known_.timed);
      bool may_be_ungated = !candidate_.is_direct() && run_.program == nullptr;
      if (may_be_ungated && (found.bad > 0 || found.late > 0)) {
        go_direct("its streams do not wait for the batch's inputs");
        continue;
      }
      return note_audit(
          run_, [&] { return candidate_.describe(found); }, found, false);
    }
  }

  void go_direct(const char* why) {
    candidate_.launch_directly();
    record_.note +=
        fmt::format("{}its calls cannot be queued, and are timed with their launches: {}",
                    record_.note.empty() ? "" : "; ", why);
  }

  void write(const timing::controller& control) {
    std::vector<std::string> patterns;
    for (size_t i = 0; i < known_.timed; ++i) patterns.push_back(known_.kinds[i].name);
    write_batches(control, before_, patterns, run_.record);
    if (!record_.measured) return;
    bool by_call = run_.options.clock == paid_clock::call;
    (by_call ? record_.by_call : record_.by_device) = {record_.candidate_seconds,
                                                       record_.reference_seconds};
    if (run_.program != nullptr) note_events(control);
    compare_with_roofline(run_, static_cast<double>(candidate_.sets()));
    note_conditions(run_.prepared.arena()->gpu(), run_.record);
  }

  // Device code runs in a process of ours, whose events are another clock: `clocks` of gpu_check.sh
  // compares them.
  void note_events(const timing::controller& control) {
    std::vector<double> seconds;
    for (const auto& x : control.pairs())
      if (x.order.form == timing::batch_form::nominal)
        seconds.push_back(x.candidate.inside / std::max(x.candidate.calls, 1u));
    if (!seconds.empty())
      run_.record.conditions.push_back({"time_by_events", median(std::move(seconds)) * 1e3, "ms"});
  }

  // The maker's answer to how many batches may still come.
  bool expired() const override { return run_.expired(); }

  measured_run& run_;
  timing_record& record_;
  const calibrated_baseline known_;
  timing::calibration before_;
  device_batches candidate_;
  device_batches baseline_;
  double call_ = 0; // seconds, of the faster side
};

} // namespace

void measure_batches(measured_run& run) {
  const auto& known = run.prepared.calibrated;
  if (!known) {
    run.record.fault = bad_baseline(run.prepared.spec(), "was not timed before the candidate came");
    return;
  }
  batch_timing{run, *known}.measure();
}

} // namespace kernelmill
