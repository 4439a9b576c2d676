#pragma once

// The node's end of a referee: starts it, asks it, and replaces it when it dies or misses a
// deadline. One request at a time; a slot is exclusive anyway while something is timed.

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gpu/process/process.hpp"
#include "messages/defaults.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

class lost_beside;

struct referee_options {
  std::vector<int> cpus;         ///< affinity of candidates; empty: every CPU
  std::string cache_directory;   ///< for built references and baselines
  unsigned pool = 2;             ///< candidate processes kept warm
  std::string gpu_node = {};     ///< "/dev/nvidia0"; empty: a CPU slot
  std::string gpu_uuid = {};     ///< of the same
  std::string backend = {};      ///< of a GPU's sources, "cuda" or "hip"; empty: "cuda"
  std::string hip_folder = {};   ///< of kernelmill_hip.h, for HIP on an NVIDIA GPU
  std::string architecture = {}; ///< of an AMD GPU, "gfx90a"
  std::string sanitizer = {};    ///< path of compute-sanitizer; empty: there is none
  std::string ncu = {};          ///< its path; empty: there is none
  std::string compiler = {};     ///< g++ that checks memory on a CPU; empty: the system's
  std::string python = {};       ///< interpreter that has torch; empty: no contract `torch`
  bool python_at_once = false;   ///< started before the first request that needs it
  unsigned determinism_runs = defaults::determinism_runs; ///< on the same contents, 2 to 64
  std::vector<std::string> layers = {}; ///< of the sandbox that stand here, for each result
  /// On a GPU: of the referee while it times, and of what it times; empty: none to spare.
  std::vector<int> timed_cpus = {};
  std::shared_ptr<lost_beside> lost = {}; ///< of all slots of a machine; empty: of this one alone
};

/// For so long an evaluation waits for others of this machine that have its cores or its GPU; then
/// it goes on beside them.
inline constexpr std::chrono::milliseconds turn_patience{30'000};

/// Thread safety: one thread at a time.
class referee_client {
public:
  /// Starts `program`, the path of kernelmill-referee; kernelmill-candidate and kernelmill-spawner
  /// must lie beside it. `processes` outlives the client.
  static expected<referee_client> launch(spawner& processes, const std::string& program,
                                         referee_options options);

  referee_client(referee_client&&) noexcept;
  referee_client& operator=(referee_client&&) noexcept;
  ~referee_client();

  /// Fails, always with class infrastructure, only when the referee itself is at fault; what is
  /// wrong with a candidate or a task stands in the result, also that referees are lost beside it
  /// again and again: see lost_beside.hpp. Waits for its turn before, see machine_turn.hpp, which
  /// is no part of `deadline_ms`. A request to `stop`, from any thread, ends the referee with its
  /// candidate, and the error is "cancelled".
  expected<Message<wire::EvaluateResult>> evaluate(const Message<wire::EvaluateRequest>& request,
                                                   int deadline_ms,
                                                   const std::stop_token& stop = {});

  expected<Message<wire::CheckResult>> check(const Message<wire::CheckRequest>& request,
                                             int deadline_ms);

  /// Whether a referee can work here: a fresh one when the last has ended. Fails as evaluate()
  /// does.
  expected<void> probe(int deadline_ms);

  /// How often the referee was replaced.
  unsigned restarts() const noexcept;

private:
  struct state;
  explicit referee_client(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
