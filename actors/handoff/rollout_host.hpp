#pragma once

// What the HANDOFF needs of configurations, runs and stores. All of it blocks except hold(), so the
// HANDOFF calls it on worker threads.

#include <cstdint>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::handoff {

/// A configuration that can be run.
struct rollout_plan {
  std::string config; ///< resolved, as JSON
  uint32_t groups = 0, group_size = 0;
};

/// Where a run stands.
struct run_standing {
  bool there = false;           ///< it has a folder
  bool live = false;            ///< a process works on it, or will again
  std::string ended;            ///< how its latest opening ended: "finished", ...; "": it did not
  bool may_go_on = false;       ///< a machine's or a server's fault kept it from finishing
  std::vector<uint32_t> groups; ///< of those asked about: whose record is committed
  std::string why = {};         ///< it ended so, where something failed
  bool server_away = false;     ///< its policy server was never reached: it may be one day
};

/// A committed group as a trainer gets it.
struct group_rows {
  uint32_t delivered = 0;            ///< members with rows
  std::vector<std::string> versions; ///< of the weights that its tokens came from
  std::string flaw;                  ///< why it cannot be trained on; "": it can
  std::string rows;                  ///< a JSON array
};

/// Weights that policy servers are to load.
struct weights_wish {
  std::string version;
  std::string path;                 ///< a checkpoint's folder, as the servers see it
  std::string adapter;              ///< name of the LoRA adapter that it is; "": it is whole
  std::vector<std::string> servers; ///< each as `policy` of a configuration, as JSON
};

struct loaded_server {
  std::string base_url, kind;
  std::string told; ///< the version that its answers tell from now on; "": they tell none
};

class rollout_host {
public:
  virtual ~rollout_host() = default;

  /// Checks what a client asks for, and says what it comes to; begins nothing.
  virtual expected<rollout_plan> plan(const std::string& run, const std::string& config) = 0;

  /// Begins the run, or goes on with it where it is there already.
  virtual expected<void> submit(const std::string& run, const std::string& config) = 0;

  virtual expected<void> cancel(const std::string& run) = 0;

  /// Whether the run is to begin no other group for now; one that it has begun goes on.
  virtual void hold(const std::string& run, bool on) = 0;

  /// `open`: the groups that are asked about, ascending.
  virtual expected<run_standing> look(const std::string& run,
                                      const std::vector<uint32_t>& open) = 0;

  virtual expected<group_rows> read(const std::string& run, uint32_t group,
                                    const std::string& form) = 0;

  /// Has all servers load the weights, at once. Errors: "weights_refused", "weights_not_loaded";
  /// some may have loaded them all the same.
  virtual expected<std::vector<loaded_server>> load_weights(const weights_wish& x) = 0;
};

} // namespace kernelmill::handoff
