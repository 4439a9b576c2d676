#pragma once

// One Kernelmill process: assembles the actors that a configuration asks for, runs a run to its
// end, and takes everything down again.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "launch/config/run_config.hpp"
#include "messages/error.hpp"
#include "messages/log/logger.hpp"
#include "messages/message.hpp"
#include "messages/run.capnp.h"

namespace kernelmill {

class hosted_run;

/// Where a run stands. Episodes and turns include what was committed before a resume; builds and
/// evaluations are those of this process.
struct progress {
  uint32_t episodes_total = 0;
  uint32_t episodes_done = 0;
  uint32_t episodes_live = 0;
  uint64_t turns = 0;       ///< committed
  uint64_t turns_fresh = 0; ///< of them those of this process
  uint64_t turns_ended = 0; ///< of them those of episodes that are done
  uint64_t builds = 0;
  uint64_t evaluations = 0;
  uint64_t at_policy = 0;   ///< turns that wait for the policy
  uint64_t at_build = 0;    ///< for a build
  uint64_t at_slot = 0;     ///< for a slot to be evaluated or profiled in
  uint64_t in_slots = 0;    ///< that are evaluated or profiled now
  uint64_t waiting = 0;     ///< turns that nothing works on: they wait for their turn in a queue
  uint64_t tried_again = 0; ///< of the requests to the policy, those that have failed at least once
  uint32_t attempts = 0;    ///< the most that one of those has had
  std::string last_error;   ///< of that one
  uint32_t accepted = 0;    ///< episodes
  uint32_t rejected = 0;
  uint32_t infrastructure = 0;
  bool paused = false;
  bool ending = false; ///< it was told to end: no new turns begin
  double seconds = 0;  ///< since this process started the run
};

struct run_options {
  run_config config;
  bool resume = false;     ///< goes on with the run in `directory`; else `directory` must be new
  std::string directory;   ///< of the run, absolute
  std::string config_json; ///< the resolved configuration, as it goes to config.json
  std::string fork_json;   ///< of a new fork: what its manifest says of its origin; else empty

  /// Called when the run's directory is there and its work begins. May be empty.
  std::function<void()> on_start;
  /// Called a few times a second from one thread of the node. May be empty.
  std::function<void(const progress&)> on_progress;
  /// Called with the run once its actors work, and with null before they end. May be empty.
  std::function<void(hosted_run*)> on_hosted;
  /// Ends the run as Ctrl-C does, where `kernelmill cancel` asks for it; called on a thread of the
  /// run. Empty: the run takes no orders over its control socket, since a head has it.
  std::function<void()> on_cancel;
  /// Called with the number of each group right after its record was committed, on a thread of the
  /// run. May be empty.
  std::function<void(uint32_t)> on_group;
  /// Shows a line of the log that people should see; called on the log's thread. May be empty.
  std::function<void(std::string_view)> on_warning;
  logger log; ///< gets the run's warnings and errors too; the run has a log of its own
};

/// Runs to the end, or until `stop` is requested: then admits nothing more, lets committed turns
/// stand and answers with outcome "cancelled". An error means that the run could not start;
/// a run that started and failed is a summary with a fault.
expected<Message<wire::RunSummary>> run_node(const run_options& options, std::stop_token stop);

} // namespace kernelmill
