#pragma once

// One process together with the buffers it was given, ready to be called again and again.

#include <optional>
#include <string>
#include <vector>

#include "gpu/referee/candidate_process.hpp"
#include "gpu/referee/workload.hpp"

namespace kernelmill {

struct call_measure {
  double seconds = 0;      ///< outside clock, from handing over the call to seeing it done
  double cpu_seconds = 0;  ///< of all threads of the process during the call
  double idle_cpu = 0;     ///< the same between the call before and this one
  double idle_seconds = 0; ///< how long that was
  double waited = 0;       ///< seconds of the call in which it or the referee had no core
};

/// Thread safety: none.
class slot {
public:
  /// Gives the process its buffers and the library; nothing of the library runs yet.
  static expected<slot> create(candidate_process process, const task& x, int library);

  /// Median seconds of a command that does nothing, before the library is loaded.
  std::optional<double> measure_overhead();

  /// Loads the library. An empty result means that it is in.
  std::optional<error> load(int deadline_ms);

  /// Puts fresh inputs into the buffers, poisons the outputs, and with `cold` evicts all of them
  /// from the caches. Returns what was found in the buffers of the call before: bytes that
  /// changed after it was done.
  std::optional<std::string> deliver(const workload& work, bool cold);

  /// Calls the function and takes its outputs into private memory at once, in an order drawn from
  /// `order`. Nothing when the process ended; see process().ending().
  std::optional<call_measure> call(const workload& work, int deadline_ms, uint64_t order);

  const std::vector<taken_output>& outputs() const noexcept { return taken_; }

  /// Says which guard bytes were written, or nothing.
  std::optional<std::string> damage() const;

  /// Says which output differs from what was taken when the call was done, or nothing.
  std::optional<std::string> changed_since() const;

  candidate_process& process() noexcept { return process_; }
  const candidate_process& process() const noexcept { return process_; }

private:
  explicit slot(candidate_process process, const task& x)
      : process_(std::move(process)), task_(&x) {}
  void take(uint64_t order);

  candidate_process process_;
  const task* task_;
  std::vector<std::optional<shared_buffer>> buffers_;
  std::vector<taken_output> taken_;
  bool called_ = false;
  double cpu_mark_ = 0; // at the end of the latest call
  double time_mark_ = 0;
};

} // namespace kernelmill
