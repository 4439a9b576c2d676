#include <cstring>

#include "gpu/referee/candidate_pool.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/batch_timing.hpp"
#include "gpu/referee/device/batches.hpp"
#include "gpu/referee/scheduling.hpp"
#include "gpu/timing/calibrate.hpp"
#include "gpu/timing/thresholds.hpp"

namespace kernelmill {

namespace {

constexpr int fills_of_each = 3;
constexpr double own_share = 0.2; // of a bound, for the baseline on a pattern

class baseline_batches {
public:
  baseline_batches(prepared_task& prepared, const secret_seed& seed, paid_clock clock)
      : prepared_(prepared), process_(prepared.baseline()->process()),
        batches_(prepared, prepared.baseline_arena(), process_, nullptr, seed,
                 kinds_of_contents(prepared.spec()), [this] { return next_draw(state_); }) {
    std::memcpy(&state_, seed.data(), sizeof state_);
    if (clock == paid_clock::call) batches_.launch_directly();
    clock_ = clock;
  }

  std::optional<error> learn() {
    process_.spin(true);
    auto known = first_is_right() ? learn_calls() : std::nullopt;
    bool ok = known && choose_patterns();
    process_.spin(false);
    if (!wrong_.empty()) return bad_baseline(prepared_.spec(), "is wrong: " + wrong_);
    if (!ok) return bad_baseline(prepared_.spec(), "ended", process_.ending()->fault);
    calibrated_baseline result;
    result.before = known->before;
    result.sets = batches_.sets();
    result.direct = batches_.is_direct();
    result.timed = kept_.size();
    kept_.insert(kept_.end(), unfit_.begin(), unfit_.end());
    for (size_t kind : kept_) {
      result.kinds.push_back(batches_.kinds()[kind]);
      if (kind != 0) result.before.fills.push_back(longest_fill(kind));
    }
    result.clock = clock_;
    result.when = now_seconds();
    prepared_.calibrated = std::move(result);
    return std::nullopt;
  }

private:
  bool make(const timing::batch_order& order, timing::batch_sample& into) {
    for (int i = 0;; ++i) {
      auto outcome = batches_.make(order, ++number_, call_deadline_ms, into);
      if (outcome != device_batches::outcome::not_queued)
        return outcome == device_batches::outcome::made;
      if (i == 2) batches_.launch_directly();
    }
  }

  bool first_is_right() {
    timing::batch_sample unused;
    if (!make({timing::batch_form::single, {0}}, unused)) return false;
    auto found = batches_.audit(1);
    if (found.bad > 0) wrong_ = batches_.describe(found);
    return found.bad == 0;
  }

  std::optional<timing::known_baseline> learn_calls() {
    unsigned most = batches_.sets();
    auto make_some = [&](const timing::batch_order& order, unsigned calls,
                         timing::batch_sample& into) {
      if (order.form != timing::batch_form::single) batches_.use(calls);
      return make(order, into);
    };
    auto known =
        timing::learn_baseline(make_some, timing::batch_seconds, most, timing::patterns_a_batch);
    if (known) batches_.use(known->calls);
    return known;
  }

  double longest_fill(size_t kind) {
    double result = 0;
    for (int i = 0; i < fills_of_each; ++i)
      result = std::max(result, batches_.fill_seconds({timing::batch_form::pattern, {kind}}));
    return result;
  }

  // Where the baseline itself is near to its bound, candidates are checked by a wider one, and not
  // timed.
  bool choose_patterns() {
    timing::batch_sample unused;
    for (size_t kind = 1; kind < batches_.kinds().size(); ++kind) {
      if (!make({timing::batch_form::single, {kind}}, unused)) return false;
      auto found = batches_.audit(batches_.kinds().size());
      if (found.bad == 0) (found.share <= own_share ? kept_ : unfit_).push_back(kind);
    }
    return true;
  }

  prepared_task& prepared_;
  candidate_process& process_;
  uint64_t state_ = 0;
  paid_clock clock_ = paid_clock::device;
  device_batches batches_;
  size_t number_ = 0;
  std::string wrong_;
  std::vector<size_t> kept_{0};
  std::vector<size_t> unfit_;
};

// The reference on the GPU is believed after it has agreed with the host's.
std::optional<error> agree_with_host(prepared_task& prepared) {
  if (prepared.truth_agrees) return std::nullopt;
  auto work = prepared.make_workload();
  auto cause = prepared.truth()->disagreement(work);
  prepared.truth_agrees = !cause;
  if (!cause) return std::nullopt;
  const auto& id = prepared.spec().id;
  return error{fault_class::configuration, "bad_reference",
               "failed to time task " + id +
                   ": reference.cu disagrees with reference.cpp: " + *cause,
               "run `kernelmill task check " + id + " --backend cuda`"};
}

} // namespace

std::optional<error> calibrate_baseline(prepared_task& prepared, candidate_pool& pool,
                                        const std::vector<int>& timed_cpus, paid_clock clock) {
  if (auto fault = agree_with_host(prepared)) return fault;
  if (prepared.calibrated && prepared.calibrated->clock == clock &&
      now_seconds() - prepared.calibrated->when < timing::calibration_holds)
    return std::nullopt;
  if (auto ok = prepared.await_gone(); !ok) return ok.error();
  if (!pool.await_retired())
    return error{fault_class::infrastructure, "gpu_stuck",
                 "failed to end the processes of earlier candidates within 10 s",
                 "`nvidia-smi` shows the GPU's state; the work is tried elsewhere"};
  if (auto fault = prepared.start_baseline(pool)) return fault;
  candidate_pool::hold until_it_is_known{pool};
  pool.settle();
  prepared.baseline_arena().gpu().rouse();
  raise_priority(prepared.baseline()->process().pid());
  cores_apart cores{timed_cpus};
  cores.hold(prepared.baseline()->process().pid());
  return baseline_batches{prepared, draw_seed(), clock}.learn();
}

} // namespace kernelmill
