#pragma once

// The HTTP routes of `kernelmill serve`: reading requests, asking the service, writing answers. All
// of it runs on the server's thread, which never waits; the service answers.

#include <map>
#include <mutex>

#include "actors/handoff/handoff.hpp"
#include "actors/policy_client/policy_keys.hpp"
#include "launch/server/api/evaluation_service.hpp"
#include "launch/server/api/kernel_api.hpp"
#include "launch/server/api/seat_keeper.hpp"
#include "launch/server/api/task_shelf.hpp"
#include "launch/server/http/router.hpp"

namespace kernelmill::services {

/// What the handlers share.
struct api {
  evaluation_service_actor service;
  std::shared_ptr<const task_shelf> tasks;
  std::string rules; ///< what else than candidate and task an answer depends on, for the cache
  std::shared_ptr<evaluation_load> load;
  handoff::handoff_actor handoff; ///< null: this server has no rollouts
  seat_keeper_actor seats;
  std::shared_ptr<kernel_answers> kernels; ///< null: this server has no library
  policy_keys keys;                        ///< that clients may name
  bool secure = false;                     ///< clients come by https
  std::atomic<uint64_t> next_waiter = 1;
  std::mutex kernelgym_mutex;
  std::map<std::string, std::string> kernelgym_ids; ///< its task_id -> ours
};
using api_ptr = std::shared_ptr<api>;

/// A candidate of a request, checked. Errors name the field, after `where`.
expected<evaluation_order> order_of(const api& x, const nlohmann::json& candidate,
                                    const std::string& where);

/// The answer to an error: 400, 404, 409, 429 or 503, by its category.
http::response response_of(const error& x);
http::response json_response(int status, const nlohmann::ordered_json& document);

/// What a client's own name for something is called here: two clients may have the same.
std::string own_name(const std::string& client, const std::string& name);

nlohmann::ordered_json number_or_null(const nlohmann::ordered_json& x);

/// Whether all gates let a verdict pass: `correct` alone says only what its cases say.
bool is_accepted(const nlohmann::ordered_json& verdict);

/// The lower bound of an accepted verdict's speedup, of what the prompt showed no more than one;
/// null where there is none.
nlohmann::ordered_json speedup_of(const nlohmann::ordered_json& verdict);

/// Parses a body; category bad_request.
expected<nlohmann::json> read_json(const std::string& text);

/// The routes of operations(), each with its handler.
std::vector<http::route> evaluation_routes(const api_ptr& x);

/// The handlers of kernelgym_api.cpp and of rollout_api.cpp, by operation.
std::map<std::string, http::handler> kernelgym_handlers(const api_ptr& x);
std::map<std::string, http::handler> rollout_handlers(const api_ptr& x);

} // namespace kernelmill::services
