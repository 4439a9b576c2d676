#pragma once

// The door of the head: nodes join there and users' commands come in. For each node it keeps three
// workers that stand for it in the work queues of its lane; when the node is gone, so are they, and
// their jobs are leased again.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/cluster/cluster.hpp"
#include "actors/cluster/parcels.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// A node as others see it.
struct member_facts {
  std::string name;
  std::string backend;
  std::string architecture;
  std::string hardware;
  std::string toolchain;
  uint32_t compilers = 0;
  std::vector<std::string> slots;
  bool sandbox_complete = true;
  bool draining = false;
  double since = 0; ///< it joined, or was lost; seconds since 1970

  /// What is built in a lane runs in it: "cuda/sm_90".
  std::string lane() const { return backend + "/" + architecture; }
};

/// Who is in the cluster, and the work queues of each lane. Thread-safe.
class cluster_roster {
public:
  cluster_roster(caf::actor_system& system, lease_policy policy);
  ~cluster_roster(); ///< ends the queues

  std::vector<member_facts> members() const;
  std::vector<std::string> lanes() const; ///< that ever were asked for

  /// The queues of a lane; jobs wait there until a node of it joins.
  cluster_actor queues(const std::string& lane);

  void put(const member_facts& x);
  void remove(const std::string& name);
  uint64_t lost() const; ///< how often a node left without a word
  /// Those of them that have not come back, a hundred at most.
  std::vector<member_facts> lost_members() const;

private:
  caf::actor_system& system_;
  lease_policy policy_;
  mutable std::mutex mutex_;
  std::map<std::string, member_facts> members_;
  std::vector<member_facts> lost_members_; // the latest last
  std::map<std::string, cluster_actor> queues_;
  uint64_t lost_ = 0;
};

using control_handler =
    std::function<Message<wire::ControlReply>(const Message<wire::ControlRequest>&)>;

struct head_gate_settings {
  std::string build;  ///< nodes of another build are refused
  uint64_t epoch = 0; ///< of this process
  std::shared_ptr<cluster_roster> roster;
  std::shared_ptr<const parcel_shelf> shelf; ///< where libraries go that nodes have built
  control_handler control;                   ///< called on a thread of its own, one after another
  logger log;                                ///< hears of nodes that come and go
};

head_gate_actor spawn_head_gate(caf::actor_system& system, head_gate_settings settings);

} // namespace kernelmill
