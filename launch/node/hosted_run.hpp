#pragma once

// One run inside a process: from its configuration to its summary. It needs a cluster
// actor, which builds and evaluates for it on one machine or on many.

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"
#include "launch/machine/backend.hpp"
#include "launch/node/node.hpp"
#include "messages/actors.hpp"
#include "messages/error.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

/// What builds and evaluates for a run, for its manifest.
struct execution_facts {
  std::string toolchain;
  std::vector<std::string> slots;
  std::vector<sandbox_layer> layers;
  bool sandbox_complete = true; ///< no layer is missing, on any machine
};

/// The longest that a job of such a run may be leased for.
std::chrono::milliseconds longest_lease(const run_config& config);

class hosted_run {
public:
  /// Loads tasks, prompts, policy and index for a backend; nothing is written yet.
  static expected<std::unique_ptr<hosted_run>> plan(run_options options,
                                                    const chosen_backend& backend);
  ~hosted_run();

  const std::string& name() const;
  bool wants_python() const;                         ///< a task is of the contract `torch`
  std::vector<std::string> task_directories() const; ///< absolute
  const logger& log() const;                         ///< silent before open()
  std::shared_ptr<const store>
  records() const; ///< null before open(); a view must not open it again

  /// Makes or opens the run's directory and its store.
  expected<void> open(const execution_facts& facts);

  /// Spawns the run's actors; `cluster` builds and evaluates for them. REQUIRES: open() succeeded.
  /// The system must outlive this, and `others` are shown beside the run's own actors. A run of
  /// policy.kind `attached` asks `attached`, which must not be null then. The run begins when the
  /// actor that this returns is told to start.
  run_actor start(caf::actor_system& system, const cluster_actor& cluster,
                  const std::vector<status_actor>& others,
                  const policy_client_actor& attached = {});

  /// Begins the run and waits for its end. When `stop` is requested it admits nothing more and lets
  /// committed turns stand. REQUIRES: start() was called.
  expected<Message<wire::RunSummary>> wait(std::stop_token stop);

  /// From any thread, between start() and the end of wait().
  void pause(bool on);

  /// From any thread, after start(): whether it is to begin no other group for now. One that it has
  /// begun goes on, which a pause does not let it.
  void hold(bool on);

private:
  struct state;
  explicit hosted_run(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
