#pragma once

// INTERNAL to gpu/referee: batches of calls on a CPU. A batch is calls one after the other, each
// timed from outside. Before each call the referee writes fresh inputs, poisons the outputs and
// evicts all of it from every cache while the process stands still, so that both sides find the
// machine in the same state and a result of an earlier call is of no use. The calls of both sides
// take turns, on the same contents: what changes the machine's pace changes both.

#include <optional>
#include <vector>

#include "gpu/referee/disturbance.hpp"
#include "gpu/referee/measured_run.hpp"
#include "gpu/timing/batch.hpp"

namespace kernelmill {

/// What of a call is the machine's: to wake a process, and to see that it is done. A busy neighbour
/// of a virtual machine doubles it for seconds, so it is measured beside the calls that it is taken
/// from. Thread safety: none.
class call_overhead {
public:
  /// `alone`: seconds of an empty call before there was a candidate. No more than twice that is
  /// taken from a call, and no more than that from one of a process with threads: a candidate that
  /// keeps a core awake may be woken sooner than an empty call.
  explicit call_overhead(double alone) : alone_(alone) {}

  void add(double seconds) { seen_.push_back(seconds); }

  /// Those so far were of a process that was woken elsewhere.
  void forget() { seen_.clear(); }

  /// Median of the latest nine; `alone` until there are five.
  double now() const;

  /// `seconds` of a call without it.
  double without(double seconds, bool threads) const;

private:
  double alone_;
  std::vector<double> seen_;
};

/// What calls showed besides their time.
struct seen_in_calls {
  std::vector<call_measure> candidate;
  std::vector<double> baseline;    ///< seconds, with what an empty call takes
  std::vector<timed_block> blocks; ///< of two pairs each: baseline first, and candidate first
  size_t worked_on = 0;            ///< calls after which the candidate did not stop
};

/// A batch of either side with the same contents, as their calls come in.
class twin_batches {
public:
  void begin() { *this = {}; }

  /// Seconds of a call on either side, and processor seconds that the candidate worked while it
  /// should have stood still, beyond the price of being stopped.
  void add(double baseline, double candidate, double late);

  /// Whether more calls are to come, of so many that are wished.
  bool wants_more(size_t wished, size_t patterns) const;

  /// Nothing counts where a pattern had no call that other programs left alone.
  timing::batch_sample sample(timing::batch_side side, size_t patterns) const;

  unsigned calls() const noexcept { return calls_; }

private:
  unsigned calls_ = 0;
  double baseline_ = 0;
  double candidate_ = 0;
  double late_ = 0;
};

/// Makes the batches of one evaluation; both sides of a pair at once. Thread safety: none.
class host_batches final : public timing::batch_maker {
public:
  /// `alone`: seconds that an empty call of a trusted process took before there was a candidate.
  host_batches(measured_run& run, double alone) : run_(run), empty_(alone) {}

  /// Makes some calls for pages, thread teams and branch predictors, checked like all others, and
  /// puts either side on the cores that its own threads need. False when timing cannot go on.
  bool warm_up();

  bool make(timing::batch_side side, const timing::batch_order& order, size_t pair,
            timing::batch_sample& into) override;
  /// A call that would take as long as the slowest so far shall end in time.
  bool expired() const override { return now_seconds() + slowest_ >= run_.deadline(); }

  const seen_in_calls& seen() const noexcept { return seen_; }
  double empty_call() const { return empty_.now(); }

private:
  struct call_pair;

  bool make_both(const timing::batch_order& order, bool baseline_first);
  bool take(size_t pattern, bool baseline_first, call_pair& into);
  bool time_empty();
  bool call_baseline(call_pair& into, double share);
  bool call_candidate(call_pair& into, double share);
  double late_work(const call_pair& x) const;
  void note_order(const call_pair& x, bool baseline_first);
  void choose_cores();

  measured_run& run_;
  call_overhead empty_;
  seen_in_calls seen_;
  excused_waits excused_;
  twin_batches batch_;
  size_t made_ = 0;               // number of the pair in `batch_`
  unsigned calls_ = 1;            // of a batch
  double stopping_price_ = 0;     // processor seconds of a baseline's thread on another core
  double slowest_ = 0;            // seconds of a candidate's call
  double least_cpu_ = -1;         // of the candidate's calls; below 0: none
  bool baseline_threads_ = false; // it works with several
  bool candidate_threads_ = false;
  bool candidate_apart_ = false;            // on its own cores; else its main thread is beside
  std::optional<timed_block> baseline_led_; // the first half of a block
  uint64_t next_call_ = first_timed_call;

  static constexpr uint64_t first_timed_call = 1'000; // contents of cases have lower numbers
};

} // namespace kernelmill
