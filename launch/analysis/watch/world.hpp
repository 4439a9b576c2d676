#pragma once

// Where views look: the folder of runs, the monitors of those in progress, and a head's nodes.
// Every view is a function from here to one JSON document; the terminal, a head that is asked from
// afar and the page show the same ones.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"
#include "messages/message.hpp"
#include "messages/run.capnp.h"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::watch {

using json = nlohmann::ordered_json;
using snapshot = Message<wire::Snapshot>;

struct stored_summary; // stored.hpp

struct world {
  std::string root = "runs"; ///< folder that holds the runs

  /// The snapshot of the monitor of a run in progress. Errors: "run_not_live".
  std::function<expected<snapshot>(const run_directory&)> ask_run;

  /// The store of a run that this process works on, which cannot be opened a second time; nothing
  /// for another's. May be empty.
  std::function<std::shared_ptr<const store>(const run_directory&)> shared_store;

  /// What a process that shows runs again and again keeps of what it read of one; never older than
  /// the last change that its readers can know of. Empty: each view reads the run.
  std::function<expected<std::shared_ptr<const stored_summary>>(const run_directory&)> kept_summary;

  /// A head's own: its gate with its nodes below it. Empty: no head is here.
  std::function<expected<snapshot>()> ask_nodes;

  /// What `kernelmill status` shows. Empty: no head is here.
  std::function<json()> status;

  /// What `kernelmill policy list` shows of a head. Empty: no head is here.
  std::function<expected<json>()> servers;
};

/// Runs of other processes of this machine, asked over their control sockets.
world local_world(const std::string& root);

/// The snapshot that a run's node gives each client of control.sock of the run's directory.
/// Errors: "run_not_live".
expected<snapshot> ask_control_socket(const run_directory& run);

/// Has the process that works on the run `verb` it: "pause", "resume" or "cancel". Errors:
/// "run_not_live"; "not_live" when a head has the run, which takes its orders elsewhere.
expected<void> order_run(const run_directory& run, const std::string& verb);

/// Whether a process works on the run: something listens at its control socket. Cheap,
/// since no actor has to answer.
bool is_worked_on(const run_directory& run);

struct live_run {
  run_directory run;
  snapshot says;
};

/// `run` alone, or when it is empty all runs below the root that answer. Errors: those of
/// find_run() and, for one that was named, "run_not_live".
expected<std::vector<live_run>> live_runs(const world& in, const std::string& run);

/// A file inside of a run, "RUN", "RUN/g3.e1", "runs/first/g3.e1": the run and the rest.
expected<std::pair<run_directory, std::string>> locate(const world& in, const std::string& what);

} // namespace kernelmill::watch
