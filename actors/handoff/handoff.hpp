#pragma once

// The HANDOFF: it owns the table of leases, and makes every change of it durable before it answers.
// It begins the runs of orders, holds them back while no trainer takes their groups, and gives
// groups to trainers as they ask. Its writes block, so it has a thread of its own. Its messages
// never leave the process.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/handoff/lease_table.hpp"
#include "actors/handoff/rollout_host.hpp"
#include "messages/actors.hpp"
#include "messages/log/logger.hpp"
#include "storage/lineage/handoff_ledger.hpp"

namespace kernelmill::handoff {

// -- what clients ask for -----------------------------------------------------------------------

struct order_request {
  order_command what;  ///< without `config`, `groups` and `group_size`, which the plan says
  std::string config;  ///< as the client has it
  int64_t seconds = 0; ///< from now on it has; 0: no deadline
};

struct look_request {
  std::string order; ///< "": all
};

struct cancel_request {
  std::string order;
};

struct batch_request {
  lease_command what;
  std::chrono::milliseconds wait{0};
};

struct weights_request {
  std::string version;
  weights_wish wish = {}; ///< without a path no server is asked to load weights
};

/// Groups of a lease by name, "RUN/g3".
struct ack_request {
  uint64_t lease = 0;
  std::vector<std::string> groups;
  int64_t step = 0;
};

struct request {
  std::variant<order_request, look_request, cancel_request, batch_request, ack_request,
               commit_command, rollback_command, weights_request>
      what;
  std::string client;                                ///< sees its own orders alone; empty: sees all
  uint64_t waiter = 0;                               ///< of a batch: the number that may leave
  std::function<void(expected<std::string>)> answer; ///< called once, with JSON; from any thread
};
using request_ptr = std::shared_ptr<request>;

} // namespace kernelmill::handoff

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::handoff::request_ptr)

namespace kernelmill::handoff {

/// The HANDOFF actor interface.
using handoff_actor = status_actor::extend<
    // Takes up the orders of the log; before anything else.
    caf::reacts_to<atom::start>,
    // Does what a client asks for.
    caf::reacts_to<atom::query, request_ptr>,
    // The client that waits for a batch has left.
    caf::reacts_to<atom::drop, uint64_t>,
    // A group's record of this run is committed.
    caf::reacts_to<atom::finished, std::string, uint32_t>,
    // The run has ended and its files are free.
    caf::reacts_to<atom::finished, std::string>,
    // INTERNAL: looks at the clock.
    caf::reacts_to<atom::tick>>;

struct handoff_settings {
  std::shared_ptr<rollout_host> host;
  std::shared_ptr<handoff_ledger> ledger;
  lease_table known;            ///< what the ledger's events add up to
  std::function<int64_t()> now; ///< milliseconds since 1970; empty: the system's clock
  logger log;
  bool own_threads = true; ///< false only under the deterministic scheduler
};

/// The table that the ledger's events add up to. Errors: "store_damaged".
expected<lease_table> read_lease_table(const handoff_ledger& from);

handoff_actor spawn_handoff(caf::actor_system& system, handoff_settings settings);

/// "RUN/g3".
std::string group_name(const std::string& order, uint32_t group);

} // namespace kernelmill::handoff
