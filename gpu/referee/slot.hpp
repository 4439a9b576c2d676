#pragma once

// One process together with the buffers it was given, ready to be called again and again. What
// the buffers are made of, the two kinds of slot know: shared memory, or memory of a GPU.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sched.h>

#include "gpu/referee/candidate_process.hpp"
#include "gpu/referee/workload.hpp"

namespace kernelmill {

struct call_measure {
  double seconds = 0;       ///< outside clock, from handing over the call to seeing it done
  double cpu_seconds = 0;   ///< of all threads of the process during the call
  double late_cpu = 0;      ///< the same from when it was seen done until they stood still, and no
                            ///< more than that took
  double idle_cpu = 0;      ///< the same from then until this call
  double waited = 0;        ///< seconds of the call in which it or the referee had no core
  std::vector<int> threads; ///< that the process had when it stood still: ids, in order
  bool still = true;        ///< false: it had not stopped in time
};

/// Where a process runs, and its referee meanwhile.
enum class core_choice {
  any,    ///< on its cores; the referee comes to the one that it ran on last
  apart,  ///< on its cores; the referee stays where it is, for another process
  beside, ///< its main thread on the referee's core, where waking it always costs the same, and so
          ///< do threads that it starts meanwhile
};

/// Thread safety: none.
class slot {
public:
  virtual ~slot() = default;

  /// Seconds of a command that does nothing, before the library is loaded: the lower quartile of
  /// some. Nothing when the process ended.
  std::optional<double> measure_overhead(const workload* work);

  /// Seconds of one such command. Behind contents it comes as a timed call of a slot that rests
  /// does, which costs it 2 to 3 us that commands in a row do not take.
  std::optional<double> empty_call(const workload* work);

  /// Where the process runs from now on. REQUIRES: a slot that rests.
  void use_cores(core_choice which);

  /// Loads the library. An empty result means that it is in.
  std::optional<error> load(int deadline_ms);

  /// Puts fresh inputs into the buffers, poisons the outputs, and with `cold` evicts all of them
  /// from the caches. Returns what was found in the buffers of the call before: bytes that
  /// changed after it was done.
  std::optional<std::string> deliver(const workload& work, bool cold);

  /// Calls the function and takes its outputs into private memory at once, in an order drawn from
  /// `order`. Nothing when the process ended; see process().ending(). Of a slot that rests, the
  /// process is told to stop before that, and stands still afterwards.
  std::optional<call_measure> call(const workload& work, int deadline_ms, uint64_t order);

  const std::vector<taken_output>& outputs() const noexcept { return taken_; }

  /// Says which guard bytes were written, or nothing.
  virtual std::optional<std::string> damage() const = 0;

  /// Says which output differs from what was taken when the call was done, or nothing.
  std::optional<std::string> changed_since() const;

  /// The outputs that were taken are no longer those in the buffers.
  void forget() noexcept { called_ = false; }

  candidate_process& process() noexcept { return process_; }
  const candidate_process& process() const noexcept { return process_; }

protected:
  slot(candidate_process process, const task& x);
  slot(slot&&) = default;
  slot& operator=(slot&&) = default;

  /// Gives the process its buffers and the library; nothing of the library runs yet.
  expected<void> attach(const std::vector<shared_memory>& parameters, int library,
                        const std::string& function);

  /// What deliver() does to the buffers.
  virtual void place(const workload& work, bool cold) = 0;
  /// Where a tensor begins behind its descriptor.
  virtual size_t offset(size_t argument) const = 0;
  /// Copies a tensor into private memory.
  virtual void copy_out(size_t argument, taken_output& into, uint64_t order) const = 0;

  const task& spec() const noexcept { return *task_; }

  candidate_process process_;
  bool rests_ = false; ///< the process runs in its calls only

private:
  void rest(call_measure& into, double done);

  const task* task_;
  std::vector<taken_output> taken_;
  bool called_ = false;
  core_choice cores_ = core_choice::any;
  cpu_set_t own_cores_{}; // before it was put beside the referee
  double cpu_mark_ = 0;   // at the end of the latest call
};

/// A slot whose buffers are shared memory.
expected<std::unique_ptr<slot>> make_host_slot(candidate_process process, const task& x,
                                               int library);

std::byte* bytes_of(taken_output& x, dtype type);
const std::byte* bytes_of(const taken_output& x, dtype type);

} // namespace kernelmill
