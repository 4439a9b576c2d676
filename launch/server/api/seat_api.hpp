#pragma once

// The routes of seats, and what they hold.

#include <vector>

#include "launch/server/api/api_fields.hpp"
#include "launch/server/api/evaluation_api.hpp"

namespace kernelmill::services {

/// Rows of schemas() and of operations().
std::vector<schema> seat_schemas();
std::vector<operation> seat_operations();

/// The handlers of seat_operations().
std::map<std::string, http::handler> seat_handlers(const api_ptr& x);

/// OpenAI's own routes, under each seat.
std::vector<http::route> seat_routes(const api_ptr& x);

} // namespace kernelmill::services
