#pragma once

// The HEAD of a cluster: it owns the roster of nodes, the runs, the policy servers and what users'
// commands change of them. For each node it keeps three workers that stand for it in the work
// queues of its lane; when the node is gone, so are they, and their jobs are leased again.
//
// Nothing blocks it: worker threads read configurations, stores and files, and probe servers.
// It ends, on exit_reason::user_shutdown, once its runs have ended resumably.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "actors/cluster/cluster.hpp"
#include "actors/cluster/parcels.hpp"
#include "actors/head/run_host.hpp"
#include "messages/actors.hpp"
#include "messages/base/json_value.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

struct head_settings {
  std::string build;                          ///< nodes of another build are refused
  uint64_t epoch = 0;                         ///< of this process
  lease_policy leases;                        ///< of every lane's queues
  std::map<std::string, cluster_actor> lanes; ///< queues that are there already; it ends them
  std::shared_ptr<const parcel_shelf> shelf;  ///< where libraries go that nodes have built
  std::string servers_file; ///< what the next head attaches again; empty: nothing is kept
  policy_pool_actor pool;   ///< of runs of kind `attached`; it ends it
  std::shared_ptr<run_host> runs;

  /// Makes the document of a view from a query (JSON), what `status` shows, and what the nodes say
  /// of themselves. Called on one thread of its own; blocks. Empty: nothing can be looked at.
  std::function<expected<nlohmann::ordered_json>(const std::string& view, const std::string& query,
                                                 const nlohmann::ordered_json& status,
                                                 const Message<wire::Snapshot>& nodes)>
      look;
  logger log;
  bool own_threads = true; ///< false only under the deterministic scheduler
};

/// REQUIRES: `shelf`, `pool` and `runs` are there.
head_actor spawn_head(caf::actor_system& system, head_settings settings);

} // namespace kernelmill
