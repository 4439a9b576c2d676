#pragma once

// The two Python processes behind the contract `torch`, and the conversation with the first: the
// torch referee, which is trusted and runs problems, and the warm process, from which candidates
// are forked. Both are started when first asked for, and again when either has ended.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/python/python_files.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/timing/calibrate.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

/// What is known of the baseline of a problem, while no candidate is there. It holds for a minute.
struct torch_calibration {
  std::string key; ///< of problem, baseline process and clock
  double when = 0;
  timing::known_baseline known;
};

struct torch_lane_options {
  std::string python;    ///< interpreter that has torch
  std::vector<int> cpus; ///< affinity of candidates; empty: all
  unsigned threads = 1;  ///< of torch on a CPU
  std::string gpu_node;  ///< "/dev/nvidia0"; empty: a CPU slot
  std::string driver;    ///< path of the GPU driver's library
  size_t pool = 1;       ///< candidate processes kept warm
  std::string kernels;   ///< of the referee for that GPU, a cubin
  std::string cache;     ///< folder for what torch.compile makes of baselines
};

/// Thread safety: none.
class torch_lane {
public:
  /// `processes` and `walls` outlive it.
  torch_lane(spawner& processes, sandbox& walls, torch_lane_options options);
  ~torch_lane();

  /// Starts the processes and does not wait until they are ready. Fails as ask() does, which
  /// starts those that are missing.
  expected<void> launch();

  /// One exchange with the torch referee; descriptors are lent. Fails with class configuration when
  /// there is no such interpreter, else with class infrastructure.
  expected<nlohmann::json> ask(const nlohmann::json& request, int deadline_ms,
                               const std::vector<int>& descriptors = {});

  /// Whether somebody outside, or the kernel for want of memory, has ended the torch referee or the
  /// warm process since forget_ends().
  bool was_ended_by_others() {
    note_ends(0);
    return ended_by_others_;
  }
  void forget_ends();

  /// What is known of the baseline that was timed last.
  torch_calibration& calibration() noexcept { return calibration_; }

  /// Seconds of a call of problems' own models, by problem and clock, where another baseline is
  /// paid. They are estimates: they hold as long as this lives.
  std::map<std::string, double>& eager_calls() noexcept { return eager_calls_; }

  bool on_gpu() const noexcept { return !options_.gpu_node.empty(); }

private:
  expected<void> await_ready();
  expected<void> start_warm_process(const python_facts& facts, int socket);
  expected<void> start_referee(const python_facts& facts, int control, int zygote);
  tl::unexpected<error> lost(const std::string& cause, int patience_ms = 0);
  void note_ends(int patience_ms);
  bool running() const; // both of them
  void drop();

  spawner& processes_;
  sandbox& walls_;
  torch_lane_options options_;
  std::optional<sandboxed_child> warm_;
  std::optional<child> referee_;
  descriptor control_;
  bool ready_ = false;
  torch_calibration calibration_;
  std::map<std::string, double> eager_calls_;
  bool ended_by_others_ = false;
  descriptor printed_; // by both
};

} // namespace kernelmill
