#pragma once

// INTERNAL to gpu/referee: one row of calls on a GPU, and the look at all that it did.

#include <string>
#include <vector>

#include "gpu/referee/device/truth.hpp"
#include "gpu/referee/judge_run.hpp"

namespace kernelmill {

struct row_times {
  double done = 0;      ///< seconds until the process said so
  double gap = 0;       ///< seconds from there until the referee had samples of all outputs
  double by_events = 0; ///< seconds by CUDA events, of device code
  double flush = 0;     ///< seconds that the flush before it took
};

/// Makes rows at the timed shape, each call with a set of buffers of its own.
/// Thread safety: none.
class device_rows {
public:
  explicit device_rows(judged_run& run);

  unsigned sets() const noexcept { return sets_; }

  /// One call, and `count` more against the clock, in an order of sets that nobody can know.
  /// Nothing when the process has ended.
  std::optional<row_times> make(candidate_process& who, unsigned count);

  /// Looks at all that the latest row did.
  device_audit audit();

  /// Says what an audit found that found something wrong.
  std::string describe(const device_audit& found);

  /// Adds how long fills, rows and audits took.
  void note_spans(std::vector<span>& into) const;

private:
  enum class contents : unsigned char { delivered, verified, reference };

  void renew();
  bool run_calls(candidate_process& who, const std::vector<std::vector<int64_t>>& calls);
  void fill(unsigned set, contents what);
  void draw_order();
  std::vector<int64_t> values(unsigned set) const;
  void sample(const char* kernel);
  void count_unasked(unsigned set);
  bool in_place() const;
  device_truth::reads source() const;

  judged_run& run_;
  device_arena& arena_;
  device& gpu_;
  const task& spec_;
  unsigned sets_;
  device_memory samples_;
  unsigned called_ = 0; // sets that the latest row called
  uint64_t row_number_;
  std::vector<unsigned> order_;
  uint32_t sample_seed_ = 0;
  double filling_ = 0; // seconds
  double calling_ = 0;
  double auditing_ = 0;
};

} // namespace kernelmill
