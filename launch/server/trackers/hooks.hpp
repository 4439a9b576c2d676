#pragma once

// Tells a URL or a command what happens to a run. On a thread of its own: a hook that is slow or
// gone costs the run nothing but, at its end, one more `timeout_ms`.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launch/config/run_config.hpp"
#include "messages/error.hpp"
#include "messages/lineage.capnp.h"
#include "messages/log/logger.hpp"

namespace kernelmill::trackers {

/// What a head says of its nodes.
struct node_roster {
  std::set<std::string> names;
  uint64_t lost = 0; ///< so far
};

class run_hooks {
public:
  /// Whether start() would take them; before a run has a directory.
  static expected<void> check(const hooks_section& settings);

  /// Null when the settings name neither a URL nor a command. Errors: those of load_secret.
  static expected<std::unique_ptr<run_hooks>> start(const hooks_section& settings, std::string run,
                                                    std::string directory, logger log);

  ~run_hooks(); ///< finishes

  /// Tells what waits, for `timeout_ms` at most, and ends; later events are dropped.
  void finish();

  /// One record, as it is committed. Does not wait.
  void follow(wire::Record::Reader x);

  /// Asks `ask` every few seconds, on the hooks' thread; it must answer within seconds. Empty: no
  /// more.
  void watch_nodes(std::function<std::optional<node_roster>()> ask);

private:
  class impl;
  explicit run_hooks(std::unique_ptr<impl> x);
  std::unique_ptr<impl> impl_;
};

} // namespace kernelmill::trackers
