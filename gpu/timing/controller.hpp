#pragma once

// Which batches come, and when they are enough.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/timing/speedup.hpp"
#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing {

/// That reason to end the timing. A referee that pays less than the pairs say can be left with a
/// wide interval all the same.
inline constexpr const char* narrow_enough = "the interval is narrow enough";

struct timing_wish {
  size_t patterns = 1;                ///< of inputs, the task's own included
  size_t together = patterns_a_batch; ///< patterns that share a batch
  double half_width = 0.03;           ///< of the interval, relative, that ends the timing
  batch_counts nominal;               ///< with the task's own inputs
  size_t rounds = 1;                  ///< of mixed batches: each has every other pattern once
  double most_more = 1e9;             ///< seconds that batches behind the plan's may take
  bool one_by_one = false;            ///< a batch is one call already
  bool own_streams = false;           ///< calls may run side by side
  double call = 0;                    ///< seconds of a call of the faster side, as far as is known
  std::function<uint64_t()> draw;     ///< of the evaluation's secret
};

/// The batches that every evaluation has, in a secret order: nothing that is seen ends the timing
/// before they were made.
std::vector<batch_order> plan_of(const timing_wish& wish);

enum class timing_end : unsigned char {
  decided,
  short_of_time, ///< before all batches of the plan were made
  over,          ///< the maker said so, and why
};

/// Makes the batches of one evaluation. Thread safety: none.
class controller {
public:
  controller(batch_maker& maker, timing_wish wish, calibration before)
      : maker_(maker), wish_(std::move(wish)), before_(before) {}

  timing_end run();

  const std::vector<batch_pair>& pairs() const noexcept { return pairs_; }
  size_t retaken() const noexcept { return retaken_; }
  const std::string& reason() const noexcept { return reason_; } ///< why it ended

  /// Nothing where too few batches of a form count.
  std::optional<paid_result> result() const;

private:
  bool take(const batch_order& order);
  bool is_over() const;
  bool has_enough(const std::vector<batch_order>& plan) const;
  bool take_apart();
  bool narrow();
  std::optional<form_result> own() const;

  batch_maker& maker_;
  timing_wish wish_;
  calibration before_;
  std::vector<batch_pair> pairs_;
  size_t number_ = 0;
  bool spent_ = false; // before slow patterns were confirmed
  double more_ = 0;    // seconds of batches so far, from the plan's last on
  size_t retaken_ = 0;
  bool enough_ = true; // batches of each form count
  std::string reason_;
};

} // namespace kernelmill::timing
