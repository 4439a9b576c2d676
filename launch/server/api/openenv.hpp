#pragma once

// OpenEnv's environment over a WebSocket: an episode for each connection, with the actions and
// observations of its `kernrl`. Its clients add up the rewards of steps, so that of a step is what
// the best turn's reward grew by.

#include "launch/server/api/evaluation_api.hpp"

namespace kernelmill::services {

/// GET /ws, /schema and /metadata.
std::vector<http::route> openenv_routes(const api_ptr& x);

} // namespace kernelmill::services
