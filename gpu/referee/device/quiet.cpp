#include "gpu/referee/device/quiet.hpp"

#include <cstring>

#include "gpu/referee/candidate_pool.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/device_rows.hpp"
#include "gpu/referee/device/pair_taking.hpp"
#include "gpu/referee/measured_run.hpp"
#include "gpu/referee/scheduling.hpp"

namespace kernelmill {

namespace {

constexpr double valid_seconds = 300;
constexpr unsigned first_sets = 8;
constexpr int rounds = 5;                // of a long and a short row with each clock, and
constexpr int most_rounds = 20;          // while others make rows longer, and
constexpr double most_seconds = 2;       // have passed
constexpr int fills = 3;                 // of contents of a kind
constexpr int row_tries = 3;             // of a row in which others had the core
constexpr double longest_usual = 150e-6; // seconds of a row's wait, until it is known
constexpr double most_share = 0.2;       // of a bound, as on a CPU (kind_choice.cpp)

class quiet_rows {
public:
  quiet_rows(prepared_task& prepared, const secret_seed& seed)
      : prepared_(prepared), baseline_(prepared.baseline()->process()),
        rows_(prepared, prepared.baseline_arena(), seed, "quiet",
              [this] { return next_draw(state_); }) {
    std::memcpy(&state_, seed.data(), sizeof state_);
  }

  std::optional<error> learn() {
    baseline_.spin(true);
    bool ok = choose_sets() && take_rows() && take_rows_apart() && choose_kinds();
    baseline_.spin(false);
    if (!wrong_.empty()) return bad_baseline(prepared_.spec(), "is wrong: " + wrong_);
    if (!ok) return bad_baseline(prepared_.spec(), "ended", baseline_.ending()->fault);
    auto call = line_of(by_call_, call_apart_);
    if (!call) return std::nullopt; // never: there are two lengths
    quiet_baseline result;
    result.call = *call;
    // Where most gates were forced, a row or two that others made longer would be believed.
    if (gated_ && are_enough(by_device_)) result.device = line_of(by_device_, device_apart_);
    if (result.device && result.device->call <= 0) result.device.reset();
    result.sets = rows_.sets();
    result.waited = usual_wait(by_call_);
    result.timed = kept_.size();
    kept_.insert(kept_.end(), unfit_.begin(), unfit_.end());
    for (size_t kind : kept_) {
      result.kinds.push_back(rows_.kinds()[kind]);
      result.contents.push_back(usual_fill(kind));
    }
    result.when = now_seconds();
    prepared_.quiet = result;
    return std::nullopt;
  }

private:
  static std::optional<row_line> line_of(const std::vector<row_times>& rows,
                                         const std::vector<row_times>& apart) {
    auto result = fit_line(least_rows(rows));
    if (result) result->to_keep_apart = to_keep_apart(apart, *result);
    return result;
  }

  // Candidates are charged for what takes longer: one such time that was short by chance would
  // charge all.
  double usual_fill(size_t kind) {
    std::vector<double> seconds;
    for (int i = 0; i < fills; ++i) seconds.push_back(rows_.fill_seconds(kind));
    return median(std::move(seconds));
  }

  // A first guess of a call's seconds, from two rows.
  bool choose_sets() {
    unsigned most = rows_.sets();
    rows_.use(std::min(most, first_sets));
    std::vector<row_times> two;
    for (int i = 0; i < 2; ++i) // the first of them load and allocate
      for (unsigned calls : {1u, rows_.sets() - 1})
        if (!row(order_of(calls, paid_clock::call), two)) return false;
    two.erase(two.begin(), two.begin() + 2);
    auto line = fit_line(two);
    double call = line ? line->call : 0;
    rows_.use(sets_for(call, call, most));
    return true;
  }

  bool take_rows() {
    double until = now_seconds() + most_seconds;
    int alike = 0; // rounds since rows had to have fewer calls
    for (int i = 0; alike < rounds || (i < most_rounds && now_seconds() < until && !is_known());
         ++i, ++alike) {
      size_t before = by_device_.size();
      if (!both_lengths(paid_clock::call, by_call_)) return false;
      if (i == 0 && !is_right()) return false;
      if (gated_ && !both_lengths(paid_clock::device, by_device_)) return false;
      if (by_device_.size() < before) alike = 0;
      // One that cannot be gated is right by one clock only.
      if (i == 0) gated_ = !by_device_.empty() && rows_.audit().bad == 0;
    }
    return true;
  }

  // None behind a gate after one whose fences and launches filled the queue.
  bool take_rows_apart() {
    bool fits = gated_;
    for (size_t i = 0; i < rounds; ++i) {
      if (!row_apart(paid_clock::call, call_apart_)) return false;
      if (fits && !row_apart(paid_clock::device, device_apart_)) return false;
      fits = device_apart_.size() > i;
    }
    return true;
  }

  bool is_known() const {
    auto known = [](const std::vector<row_times>& rows) {
      return are_enough(rows) && are_alike(least_rows(rows));
    };
    return known(by_call_) && (!gated_ || known(by_device_));
  }

  // Who is wrong without a candidate is so by nobody else's doing.
  bool is_right() {
    auto found = rows_.audit();
    if (found.bad > 0) wrong_ = rows_.describe(found);
    return found.bad == 0;
  }

  // Of other contents at the timed shape a bound may ask for more than fp32 gives: who is as good
  // as the baseline shall be far from it. Where it is within the bound all the same, candidates are
  // checked by a wider one.
  bool choose_kinds() {
    std::vector<row_times> unused;
    for (size_t kind = 1; kind < rows_.kinds().size(); ++kind) {
      if (!row(order_of(1, paid_clock::call, kind), unused)) return false;
      auto found = rows_.audit();
      if (found.bad == 0) (found.share <= most_share ? kept_ : unfit_).push_back(kind);
    }
    return true;
  }

  bool both_lengths(paid_clock clock, std::vector<row_times>& into) {
    unsigned sets = sets_of(clock);
    std::vector<row_times> both;
    if (!row(order_of(long_calls(sets, next_draw(state_)), clock), both, true)) return false;
    if (sets_of(clock) < sets) into.clear(); // beside longer rows than are to come all are short
    if (!row(order_of(short_calls(sets_of(clock)), clock), both)) return false;
    into.insert(into.end(), both.begin(), both.end());
    return true;
  }

  // Behind a gate of half the calls: fences take places of the queue, too.
  bool row_apart(paid_clock clock, std::vector<row_times>& into) {
    unsigned calls = long_calls(sets_of(clock), next_draw(state_));
    auto order = order_of(clock == paid_clock::device ? (calls + 1) / 2 : calls, clock);
    order.apart = true;
    return row(order, into);
  }

  static row_order order_of(unsigned calls, paid_clock clock, size_t kind = 0) {
    row_order result;
    result.kind = kind;
    result.clock = clock;
    result.calls = calls;
    return result;
  }

  unsigned sets_of(paid_clock clock) const {
    return clock == paid_clock::device ? room_.of(rows_.sets()) : rows_.sets();
  }

  // One whose gate was forced began before its contents were there, and says nothing.
  bool row(row_order order, std::vector<row_times>& into, bool is_long = false) {
    auto clock = order.clock;
    unsigned calls = order.calls;
    std::optional<row_times> made;
    auto waits = [&](unsigned fewer) {
      order.calls = fewer;
      made = rows_.make({baseline_}, order);
      return !made || clock != paid_clock::device || !rows_.gate_was_forced();
    };
    for (int i = 0; i < row_tries && (!made || lost_its_core(*made, longest_usual)); ++i) {
      if (clock == paid_clock::device) calls = std::min(calls, sets_of(clock) - 1);
      bool all_waited = room_.fit(calls, is_long, waits);
      if (!made) return false;
      if (!all_waited) return true;
    }
    into.push_back(*made);
    return true;
  }

  prepared_task& prepared_;
  candidate_process& baseline_;
  uint64_t state_ = 0;
  device_rows rows_;
  std::vector<row_times> by_call_;
  std::vector<row_times> by_device_;
  std::vector<row_times> call_apart_;
  std::vector<row_times> device_apart_;
  bool gated_ = true;
  queue_room room_;
  std::string wrong_;           // what the baseline's rows got wrong
  std::vector<size_t> kept_{0}; // kinds
  std::vector<size_t> unfit_;   // kinds that are checked, and not timed
};

} // namespace

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

std::optional<error> learn_quiet_baseline(prepared_task& prepared, candidate_pool& pool,
                                          const std::vector<int>& timed_cpus) {
  if (auto fault = agree_with_host(prepared)) return fault;
  if (prepared.quiet && now_seconds() - prepared.quiet->when < valid_seconds) return std::nullopt;
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
  prepared.quiet.reset(); // a kind that was wrong once may be right
  return quiet_rows{prepared, draw_seed()}.learn();
}

} // namespace kernelmill
