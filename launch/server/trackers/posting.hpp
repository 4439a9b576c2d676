#pragma once

// One request of a thread that waits for its answer.

#include <chrono>
#include <functional>
#include <optional>

#include "actors/policy_client/http/http_client.hpp"

namespace kernelmill::trackers {

using steady_time = std::chrono::steady_clock::time_point;

/// Sends `request` and waits for its end, until `limit()` at most, which may come nearer
/// meanwhile. Nothing when the time was over.
std::optional<http_response> post_until(http_client& client, http_request request,
                                        const std::function<steady_time()>& limit);

} // namespace kernelmill::trackers
