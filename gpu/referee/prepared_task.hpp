#pragma once

// A task that is ready to judge candidates: its reference loaded here, its baseline built and,
// once something is timed, running in a sandbox of its own. The baseline is trusted, so its
// process serves one candidate after the other; candidates get a process each.

#include <array>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "gpu/referee/device/contents_plan.hpp"
#include "gpu/referee/slot.hpp"
#include "gpu/timing/overhead.hpp"
#include "gpu/toolchain/trusted_build.hpp"

namespace kernelmill {

class device;
class device_arena;
class device_truth;
class candidate_pool;
class program_slot;
enum class paid_clock : unsigned char;

/// What the batches of a task's baseline are on a GPU while no candidate is there.
struct calibrated_baseline {
  std::vector<contents_kind> kinds; ///< on which the baseline is within its bounds
  size_t timed = 1;                 ///< of them, on which it is well within: the first ones
  timing::calibration before;
  unsigned sets = 1;   ///< of a batch of many calls
  bool direct = false; ///< its calls cannot be queued, or are not to be
  paid_clock clock{};  ///< that was asked for
  double when = 0;     ///< by now_seconds()
};

/// Inputs that timed calls on a CPU may have.
struct timed_pattern {
  task_case which;
  double share = 1; ///< of its bounds that a call may use up
};

/// Thread safety: none.
class prepared_task {
public:
  /// `gpu` is null on a CPU slot.
  static expected<std::unique_ptr<prepared_task>> prepare(task x, trusted_builder& builder,
                                                          device* gpu);

  /// A library that is timed in place of the task's own baseline; empty: that one is.
  const std::string& named_baseline() const noexcept { return named_baseline_; }
  void time_beside(std::string path) { named_baseline_ = std::move(path); }
  ~prepared_task();

  const task& spec() const noexcept { return task_; }
  workload make_workload() const { return workload{task_, reference_}; }
  const std::string& baseline_path() const noexcept { return baseline_path_; }
  /// What the starter makes; empty where there is none, or it does not compile.
  const std::string& starter_path() const noexcept { return starter_path_; }

  /// Puts a process into a slot of the right kind.
  expected<std::unique_ptr<slot>> make_slot(candidate_process process, int library);

  /// Before a candidate is judged: chooses buffers that nobody can still reach.
  expected<void> begin(bool device_code = false);
  /// After it: `gone` is ready when its process is.
  void release(std::shared_future<void> gone) { lane().gone = std::move(gone); }

  /// Null on a CPU slot.
  device_arena* arena() noexcept { return lane().arena.get(); }
  device_truth* truth() noexcept { return truth_.get(); }

  /// The process that runs device code; started when there is none.
  expected<program_slot*> runner(candidate_pool& pool);
  void drop_runner(candidate_pool& pool);

  /// Empty until started, and again when it has ended.
  std::unique_ptr<slot>& baseline() noexcept {
    return baseline_arena_ != nullptr ? baseline_ : lane().baseline;
  }

  /// Makes sure that the baseline runs, in a sandbox of its own.
  std::optional<error> start_baseline(candidate_pool& pool);

  /// The baseline's buffers. They are its own, unless the card has no room for them: then those of
  /// the candidate.
  device_arena& baseline_arena() noexcept {
    return baseline_arena_ != nullptr ? *baseline_arena_ : *lane().arena;
  }
  bool has_baseline_arena() const noexcept { return baseline_arena_ != nullptr; }

  /// Waits until no process that a candidate had is there any more.
  expected<void> await_gone();

private:
  explicit prepared_task(task x);
  expected<void> build_starter(trusted_builder& builder, bool gpu);
  expected<reference_function> load(const std::string& path, const std::string& source);

  task task_;
  std::string baseline_path_;
  std::string named_baseline_;
  std::string starter_path_;
  std::vector<void*> libraries_;
  reference_function reference_ = nullptr;
  reference_function device_reference_ = nullptr;

  // The driver needs some 60 ms to end a process, and until then what it has running may write
  // into its buffers: so candidates take turns with two sets of them.
  struct buffers {
    std::unique_ptr<device_arena> arena;
    std::unique_ptr<slot> baseline; // before what it maps
    std::unique_ptr<program_slot> runner;
    std::shared_future<void> gone;
  };
  buffers& lane() noexcept { return lanes_[current_]; }

  static expected<void> await(buffers& x);
  void make_baseline_arena();

  device* gpu_ = nullptr;
  std::unique_ptr<device_truth> truth_;
  std::unique_ptr<device_arena> baseline_arena_;
  std::unique_ptr<slot> baseline_; // before what it maps
  std::array<buffers, 2> lanes_;
  size_t current_ = 0;

public:
  bool is_looked_at = false;  ///< whether `unfit` is known; see task_check.hpp
  std::optional<error> unfit; ///< why no candidate can be judged by it
  std::optional<calibrated_baseline> calibrated;
  bool truth_agrees = false;           ///< of the GPU's reference with the host's, once tried
  std::vector<timed_pattern> patterns; ///< on a CPU, once chosen; the task's own first
};

/// The few tasks that were used last.
/// Thread safety: none.
class prepared_tasks {
public:
  prepared_tasks(trusted_builder& builder, size_t limit, device* gpu = nullptr)
      : builder_(builder), limit_(limit), gpu_(gpu) {}

  /// `digest` may be empty; else the folder must still hold what it names. `baseline` as
  /// prepared_task::named_baseline().
  expected<prepared_task*> get(const std::string& directory, const std::string& digest,
                               const std::string& baseline = {});

  /// Forgets tasks, those used longest ago first, while a GPU is crowded: others need its memory.
  void make_room();

private:
  trusted_builder& builder_;
  size_t limit_;
  device* gpu_;
  std::list<std::unique_ptr<prepared_task>> tasks_; // latest first
};

} // namespace kernelmill
