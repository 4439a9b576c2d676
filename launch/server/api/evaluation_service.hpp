#pragma once

// The actor that evaluations are handed to and asked for. It owns the table, gives the cluster no
// more than its slots hold, judges the results, and answers the clients that wait. Its messages
// never leave the process.

#include <atomic>
#include <functional>
#include <memory>

#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/governance/judge.hpp"
#include "launch/server/api/evaluation_table.hpp"
#include "messages/actors.hpp"

namespace kernelmill::services {

/// Documents of evaluations, in the order that was asked for, or an error.
using documents = expected<std::vector<nlohmann::ordered_json>>;

struct evaluation_entry {
  evaluation_table::entry entry;
  std::function<void(documents)> reply; ///< on the service's thread; at once, or when all are over
};

struct evaluation_query {
  std::string id;
  std::string client;                ///< that asks: each finds only its own evaluations
  std::chrono::milliseconds wait{0}; ///< for its end
  uint64_t waiter = 0;
  std::function<void(documents)> reply; ///< with one, or the error not_found
};

using evaluation_entry_ptr = std::shared_ptr<evaluation_entry>;
using evaluation_query_ptr = std::shared_ptr<evaluation_query>;

} // namespace kernelmill::services

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::services::evaluation_entry_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::services::evaluation_query_ptr)

CAF_BEGIN_TYPE_ID_BLOCK(kernelmill_services, caf::id_block::kernelmill_handles::end)
CAF_ADD_TYPE_ID(kernelmill_services, (kernelmill::services::evaluation_entry_ptr))
CAF_ADD_TYPE_ID(kernelmill_services, (kernelmill::services::evaluation_query_ptr))
CAF_END_TYPE_ID_BLOCK(kernelmill_services)

namespace kernelmill::services {

/// The EVALUATION SERVICE actor interface.
using evaluation_service_actor = status_actor::extend<
    // Takes candidates; replies by the function inside.
    caf::reacts_to<atom::evaluate, evaluation_entry_ptr>,
    // Says where an evaluation stands, at once or when it has ended.
    caf::reacts_to<atom::read, evaluation_query_ptr>,
    // Cancels an evaluation.
    caf::reacts_to<atom::cancel, evaluation_query_ptr>,
    // A request's client has left.
    caf::reacts_to<atom::drop, uint64_t>,
    // INTERNAL: a request has waited for as long as it wanted.
    caf::reacts_to<atom::tick, uint64_t>>;

/// The service's load, for readers that must not wait for the service.
struct evaluation_load {
  std::atomic<uint64_t> waiting = 0;
  std::atomic<uint64_t> running = 0;
  std::atomic<bool> full = false;
  std::atomic<uint64_t> done = 0;     ///< judged since the start
  std::atomic<uint64_t> accepted = 0; ///< of them
  std::atomic<uint64_t> faults = 0;   ///< of them: the machine's
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  double uptime_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
};

struct evaluation_service_options {
  evaluation_table::limits limits;
  judging_options judging;
  governance_config rules;
  std::chrono::milliseconds patience{0}; ///< for one answer of the cluster, with all its attempts
  std::shared_ptr<evaluation_load> load;
};

struct evaluation_service_state {
  evaluation_service_options options;
  cluster_actor cluster;
  std::unique_ptr<evaluation_table> table;
  struct waiting_request {
    std::vector<std::string> ids;
    size_t left = 0; ///< of them that are not over
    std::function<void(documents)> reply;
  };
  std::map<uint64_t, waiting_request> requests;

  static inline const char* name = "evaluation-desk";
};

evaluation_service_actor::behavior_type
evaluation_service(evaluation_service_actor::stateful_pointer<evaluation_service_state> self,
                   evaluation_service_options options, cluster_actor cluster);

} // namespace kernelmill::services
