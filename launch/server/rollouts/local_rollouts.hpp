#pragma once

// The runs of orders of rollouts, in this process and on this machine: what the HANDOFF of
// `kernelmill serve` begins, holds and reads.

#include <functional>
#include <memory>
#include <string>

#include <caf/fwd.hpp>

#include "actors/handoff/handoff.hpp"
#include "actors/head/members.hpp"
#include "actors/policy_client/policy_keys.hpp"
#include "launch/machine/backend.hpp"
#include "messages/actors.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill::rollouts {

struct local_options {
  std::string root; ///< folder of the runs, absolute
  cluster_actor queues;
  lane_facts lane;
  chosen_backend backend;
  std::string tasks_root;  ///< empty: the installation's
  policy_keys keys;        ///< that orders may name
  bool own_orders = false; ///< all are the operator's own, and may name files and programs
  logger log;
};

/// Also passes on its runs' events: before the first submit(), tell_to() sets the receiver.
class local_rollouts : public handoff::rollout_host {
public:
  virtual void tell_to(const handoff::handoff_actor& listener) = 0;
};

/// The system outlives it.
std::shared_ptr<local_rollouts> make_local_rollouts(caf::actor_system& system,
                                                    local_options options);

} // namespace kernelmill::rollouts
