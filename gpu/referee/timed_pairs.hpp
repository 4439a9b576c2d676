#pragma once

// INTERNAL to gpu/referee: calls of baseline and candidate on a CPU, one of each with the same
// fresh contents, every output checked; and what all of them showed besides their time.

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "gpu/referee/disturbance.hpp"
#include "gpu/referee/measured_run.hpp"

namespace kernelmill {

/// Seconds of a call on either side.
struct pair_times {
  double reference = 0;
  double candidate = 0;
  double reference_waited = 0;
  bool reference_disturbed = false;
  bool candidate_disturbed = false; ///< and excused for it
  bool disturbed = false;           ///< either
};

/// The pair that counts where a kind is met for the first time. One that was disturbed is taken
/// again, or whoever waits for others would not be timed on that kind; where each of three is, the
/// shorter call of either side counts. Nothing when `take` says that timing cannot go on.
std::optional<pair_times> meet_kind(const std::function<bool(pair_times&)>& take,
                                    const std::function<bool()>& expired);

/// At most this share of a call is taken to be none of its doing: a clock has noise.
inline constexpr double largest_fixed_share = 0.75;

/// What of a call is of nobody's doing: to wake a process, and to see that it is done. A busy
/// neighbour of a virtual machine doubles it for seconds, so it is measured beside the calls that
/// it is taken from. Thread safety: none.
class fixed_cost {
public:
  /// `alone`: seconds of an empty call before there was a candidate. Whatever a candidate does, no
  /// more than twice that is taken from a call, and no more than that from one of a process with
  /// threads: whoever keeps a core awake may be woken sooner than an empty call.
  explicit fixed_cost(double alone) : most_(2 * alone), alone_(alone) {}

  void add(double seconds) { seen_.push_back(seconds); }

  /// Median of the latest nine; `alone` until there are five.
  double now() const;

  /// Those so far were of a process that was woken elsewhere.
  void forget() { seen_.clear(); }

  /// Median of all.
  double typical() const;

  /// `seconds` of a call without it. `threads`: of a process that has some.
  double without(double seconds, bool threads = false) const;

private:
  double bounded(std::vector<double> times) const;

  double most_;
  double alone_;
  std::vector<double> seen_;
};

/// What calls showed besides their time.
struct seen_in_calls {
  std::vector<call_measure> measures;  ///< of the candidate
  std::vector<double> reference_late;  ///< seconds of a processor after a call was done
  double stopping_price = 0;           ///< the least of these where the baseline was anywhere
  std::vector<double> reference_times; ///< seconds, with what is fixed
  size_t worked_on = 0;                ///< calls after which the candidate did not stop
  bool reference_in_parallel = false;  ///< it works with several threads
  bool candidate_in_parallel = false;
  bool candidate_apart = false; ///< on its own cores; else its main thread is beside
};

/// Makes the calls. Whoever is not timed is stopped meanwhile.
/// Thread safety: none.
class timed_pairs {
public:
  /// `fixed`: seconds that an empty call of a trusted process took before there was a candidate.
  timed_pairs(measured_run& run, double fixed) : run_(run), empty_calls_(fixed) {}

  /// One call of each, on the same fresh contents. False when timing cannot go on: the record says
  /// why. `share` of its bounds is the candidate's.
  bool take(const task_case& kind, bool reference_first, pair_times& times, double share = 1);

  /// A call of the candidate alone, on contents of a kind that is not timed, and its seconds. False
  /// as above.
  bool check_alone(const task_case& kind, double& seconds);

  const seen_in_calls& seen() const noexcept { return seen_; }

  /// Seconds that an empty call took meanwhile: the median.
  double fixed() const { return empty_calls_.typical(); }

  /// Ends the calls that warm up, which are no timed ones: who waited in them needs no excuse.
  /// Puts either side on the cores that its own threads need. What a candidate starts changes
  /// nothing for its baseline.
  void settle();

private:
  void fill(const task_case& kind);
  bool time_empty();
  bool time_reference(pair_times& times, double share);
  bool time_candidate(pair_times& times, double share);
  bool is_right(double share_of_bounds);
  double without_fixed(const call_measure& candidate) const;
  bool blame_task(const std::string& cause);

  measured_run& run_;
  fixed_cost empty_calls_;
  seen_in_calls seen_;
  excused_waits excused_;
  double least_cpu_ = std::numeric_limits<double>::infinity(); // of the candidate's calls
  uint64_t next_call_ = first_timed_call;

  static constexpr uint64_t first_timed_call = 1'000; // contents of cases have lower numbers
};

} // namespace kernelmill
