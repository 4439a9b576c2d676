#pragma once

// OpenEnv's task API: which tasks there are, by split, so that a trainer draws them and begins an
// episode with `reset(split=..., index=...)`.

#include "launch/server/api/evaluation_api.hpp"

namespace kernelmill::services {

/// The name of the environment in OpenEnv's addresses.
inline constexpr const char* openenv_name = "kernelmill";

/// The tasks of a split, train or dev, in the order of their ids, which is that of their indices.
/// Errors: "unknown_task" for another split.
expected<std::vector<std::shared_ptr<const task>>> tasks_of_split(const task_shelf& from,
                                                                  const std::string& split);

/// The task that "split" and "index" of a request name. Errors: "unknown_task", "bad_request".
expected<std::shared_ptr<const task>> task_at(const task_shelf& from, const nlohmann::json& given);

/// A route whose answer never changes.
http::route fixed_route(std::string path, const nlohmann::ordered_json& document);

/// GET /list_environments and /kernelmill/splits; POST /kernelmill/tasks, num_tasks, task and
/// task_range.
std::vector<http::route> openenv_task_routes(const api_ptr& x);

} // namespace kernelmill::services
