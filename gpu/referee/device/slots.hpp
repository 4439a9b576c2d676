#pragma once

// The slots of a GPU: a process whose tensors are a device arena. Candidates of the contract
// `native` get a process each; device code is run by one process of ours after another.

#include <optional>
#include <vector>

#include "gpu/candidate/device_program.hpp"
#include "gpu/referee/device/arena.hpp"
#include "gpu/referee/device/program_plan.hpp"

namespace kernelmill {

class device_slot : public slot {
public:
  static expected<std::unique_ptr<slot>> create(candidate_process process, const task& x,
                                                int library, device_arena& arena);

  std::optional<std::string> damage() const override;

protected:
  device_slot(candidate_process process, const task& x, device_arena& arena)
      : slot(std::move(process), x), arena_(arena) {}

  void place(const workload& work, bool cold) override;
  size_t offset(size_t argument) const override { return arena_.offset(argument, 0); }
  void copy_out(size_t argument, taken_output& into, uint64_t order) const override;

  device_arena& arena_;
};

/// Runs device code: candidate after candidate, until one of them makes it fail.
class program_slot final : public device_slot {
public:
  static expected<std::unique_ptr<program_slot>> create(candidate_process process, const task& x,
                                                        device_arena& arena);

  /// Loads what a build of the contract `device` made. An empty result means that it is in.
  std::optional<error> load_program(const std::string& artifact, int deadline_ms);

  /// Makes the geometry that of a shape. Fails with "bad_launch" where it is impossible there.
  std::optional<error> select(const scalar_values& scalars);

  /// Calls that a batch may have: the driver's queue has some 1,000 places, and who finds it full
  /// waits.
  unsigned most_queued() const noexcept;

  /// Whether the next candidate needs another process: the heap of `malloc` in kernels and what
  /// they print are the context's, not the module's.
  bool leaves_traces() const { return uses_heap_ || process().printed_bytes() > 0; }

private:
  program_slot(candidate_process process, const task& x, device_arena& arena, shared_page file)
      : device_slot(std::move(process), x, arena), file_(std::move(file)) {}

  device_program& shared() const noexcept { return *static_cast<device_program*>(file_.data()); }

  shared_page file_;
  program_plan plan_;
  bool uses_heap_ = false;
};

} // namespace kernelmill
