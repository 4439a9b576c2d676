#pragma once

// What a head needs of configurations, tasks and stores: runs that it can open, start and close.
// Reading and opening block, so the HEAD calls them on a worker thread.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/head/members.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// What a run is, before it has a lane.
struct head_run_facts {
  std::string name;
  std::string directory;
  std::string backend; ///< that its configuration asks for: "auto", "cpu", "cuda"
  std::string lane;    ///< it was in before; empty: a new one
  int64_t priority = 0;
  std::vector<std::string> required_layers{}; ///< of the sandbox
};

/// One run. Not thread-safe, but it need not be used on one thread alone.
class head_run {
public:
  virtual ~head_run() = default;
  virtual const head_run_facts& facts() const = 0;

  /// Loads what it needs and makes or opens its directory and its store; the run is durable when
  /// this returns. Blocks.
  virtual expected<void> open(const lane_facts& where) = 0;

  /// Spawns its actors; `queues` build and evaluate for it, `attached` completes for a run of that
  /// policy kind, `head` is shown beside them. REQUIRES: open() succeeded. Reads keys.
  virtual run_actor start(caf::actor_system& system, const cluster_actor& queues,
                          const policy_client_actor& attached, const status_actor& head) = 0;

  /// Whether it is to begin no other group for now. From any thread, after start().
  virtual void hold(bool) {
    // nop: it cannot be held
  }

  /// Ends its actors and gives its files back. A run that is not `over` is one for the next head.
  /// Blocks.
  virtual void close(bool over) = 0;
};

using head_run_ptr = std::shared_ptr<head_run>;

/// Where runs come from. Called on one thread at a time; blocks.
class run_host {
public:
  virtual ~run_host() = default;

  /// A new run from a resolved configuration.
  virtual expected<head_run_ptr> read(const std::string& config_json) = 0;

  /// One that is there, to go on with.
  virtual expected<head_run_ptr> find(const std::string& name) = 0;

  /// The names of those that an earlier head was at work on when it ended.
  virtual std::vector<std::string> left_over() = 0;
};

} // namespace kernelmill
