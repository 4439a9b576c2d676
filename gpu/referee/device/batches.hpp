#pragma once

// INTERNAL to gpu/referee: batches of calls on a GPU. All calls are queued; then the inputs are
// written and the caches flushed, and the referee's GPU releases the batch as the last act of that.
// The process stands still from when its calls are queued until its outputs have been sampled.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/referee/device/contents_plan.hpp"
#include "gpu/referee/device/truth.hpp"
#include "gpu/referee/measured_run.hpp"
#include "gpu/timing/batch.hpp"

namespace kernelmill {

class program_slot;

/// One side's batches, in one arena. Thread safety: none. Throws device_failure.
class device_batches {
public:
  /// `draw` decides orders. Batches of one number of either side have identical inputs.
  device_batches(prepared_task& prepared, device_arena& arena, candidate_process& process,
                 program_slot* program, const secret_seed& seed, std::vector<contents_kind> kinds,
                 std::function<uint64_t()> draw);
  ~device_batches();
  device_batches(const device_batches&) = delete;
  device_batches& operator=(const device_batches&) = delete;

  /// The sets of a long batch from now on. REQUIRES: at most those of the arena.
  void use(unsigned sets);
  unsigned sets() const noexcept { return sets_; }
  const std::vector<contents_kind>& kinds() const noexcept { return kinds_; }

  /// Calls are timed with their launches from now on.
  void launch_directly() noexcept { direct_ = true; }
  bool is_direct() const noexcept { return direct_; }

  enum class outcome : unsigned char {
    made,
    not_queued, ///< the process waited for the batch's work before all was queued
    ended,      ///< the process has
  };
  outcome make(const timing::batch_order& order, size_t number, int limit_ms,
               timing::batch_sample& into);

  /// Seconds until the inputs of such a batch are there, while no process has work.
  double fill_seconds(const timing::batch_order& order);

  /// Whether the process stands still while its batch runs. Device code has no host of its own.
  bool rests() const noexcept { return program_ == nullptr && !direct_; }

  /// Looks at all that the latest batch did. `wide` are kinds from which on bounds are wider.
  device_audit audit(size_t wide);
  std::string describe(const device_audit& found);

  void note_spans(std::vector<span>& into) const;

private:
  bool queue(int limit_ms);
  void fill();
  bool await_completion(int limit_ms) const;
  bool launch(int limit_ms);
  bool warm(int limit_ms);
  void choose(const timing::batch_order& order);
  void sample(const char* kernel, bool taking);
  std::vector<int64_t> values(unsigned set) const;
  template <class Visit>
  void for_each_input(size_t kind, Visit visit);
  template <class Visit>
  void for_each_stretch(Visit visit);

  prepared_task& prepared_;
  device_arena& arena_;
  device& gpu_;
  candidate_process& process_;
  program_slot* program_;
  const task& spec_;
  secret_seed seed_;
  std::vector<contents_kind> kinds_;
  std::function<uint64_t()> draw_;
  cuda::device_pointer page_ = 0; // the process's, for the referee's GPU
  device_memory samples_;
  device_memory order_there_;
  bool direct_ = false;
  bool apart_ = false; // calls of the latest batch
  unsigned sets_ = 1;
  unsigned first_ = 0;          // of the sets that the latest batch filled
  unsigned filled_ = 1;         // and how many
  unsigned most_calls_;         // that fit into the driver's queue
  std::vector<unsigned> order_; // sets that it called
  std::vector<size_t> kind_of_; // by set
  size_t number_ = 0;
  uint32_t token_ = 0;
  uint32_t sample_seed_ = 0;
  double preparing_ = 0; // seconds
  double calling_ = 0;
  double auditing_ = 0;
};

} // namespace kernelmill
