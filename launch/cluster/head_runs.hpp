#pragma once

// The runs of a head: takes them in, gives each a thread that waits for its end, and takes those up
// again that were in progress when an earlier head ended, however it ended.

#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "actors/cluster/head_gate.hpp"
#include "launch/node/hosted_run.hpp"

namespace kernelmill {

/// Whether a head works on the run of a directory, or did when it ended.
bool is_marked_by_head(const std::string& directory);

/// Thread-safe; it ends its runs resumably when it is destroyed.
class head_runs {
public:
  /// Runs of kind `attached` ask `attached` for completions. `log` hears the runs' warnings.
  head_runs(caf::actor_system& system, std::shared_ptr<cluster_roster> roster, std::string root,
            policy_client_actor attached, logger log);
  ~head_runs();

  /// Takes up every run below the root that is marked as in progress. Returns what could not be.
  std::vector<std::string> recover();

  /// Starts a run from a resolved configuration; it is durable when this returns. Returns its name.
  expected<std::string> submit(const std::string& config_json);

  expected<void> cancel(const std::string& name);
  expected<void> pause(const std::string& name);
  /// Goes on with a run that is paused, or with one below the root that nobody works on.
  expected<void> resume(const std::string& name);

  const std::string& root() const { return root_; }

  /// The store of a run that is in progress here; nobody's else.
  std::shared_ptr<const store> records(const std::string& name) const;

  /// Each run that this head has seen: name, state, progress, fault.
  nlohmann::ordered_json status() const;

private:
  struct entry;

  expected<void> start(const std::shared_ptr<entry>& x, run_options options, std::string lane);
  expected<void> take_up(const std::string& name);
  expected<std::string> choose_lane(const run_config& config) const;
  /// REQUIRES: mutex_ is held. Errors: not_found, not_live.
  expected<entry*> live_run(const std::string& name) const;
  void attend(entry& x, std::stop_token stop);
  void keep(const std::shared_ptr<entry>& x);

  caf::actor_system& system_;
  std::shared_ptr<cluster_roster> roster_;
  std::string root_;
  policy_client_actor attached_;
  logger log_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<entry>> runs_; // the latest of each name
  std::vector<std::shared_ptr<entry>> all_;
};

} // namespace kernelmill
