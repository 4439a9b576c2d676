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

/// What calls showed besides their time.
struct seen_in_calls {
  std::vector<call_measure> measures;  ///< of the candidate
  std::vector<double> reference_late;  ///< seconds of a processor after a call was done
  std::vector<double> reference_times; ///< seconds, with what is fixed
  size_t worked_on = 0;                ///< calls after which the candidate did not stop
  bool in_parallel = false;            ///< either works with several threads
};

/// Makes the calls. Whoever is not timed is stopped meanwhile.
/// Thread safety: none.
class timed_pairs {
public:
  /// `fixed`: seconds that an empty call of a trusted process takes.
  timed_pairs(measured_run& run, double fixed) : run_(run), fixed_(fixed) {}

  /// One call of each, on the same fresh contents. False when timing cannot go on: the record says
  /// why. `share` of its bounds is the candidate's.
  bool take(const task_case& kind, bool reference_first, pair_times& times, double share = 1);

  /// A call of the candidate alone, on contents of a kind that is not timed, and its seconds. False
  /// as above.
  bool check_alone(const task_case& kind, double& seconds);

  const seen_in_calls& seen() const noexcept { return seen_; }

  /// Calls so far were no timed ones: who waited in them needs no excuse.
  void forget_waits() { excused_ = {}; }

private:
  void fill(const task_case& kind);
  bool time_reference(pair_times& times);
  bool time_candidate(pair_times& times, double share);
  bool is_right(double share_of_bounds);
  bool blame_task(const std::string& cause);
  double without_fixed(double seconds) const;

  measured_run& run_;
  double fixed_;
  seen_in_calls seen_;
  excused_waits excused_;
  double least_cpu_ = std::numeric_limits<double>::infinity(); // of the candidate's calls
  uint64_t next_call_ = first_timed_call;

  static constexpr uint64_t first_timed_call = 1'000; // contents of cases have lower numbers
};

} // namespace kernelmill
