#pragma once

// What GET /metrics of vLLM, SGLang and llama.cpp says of a server's load, in Prometheus' text.

#include <string>
#include <string_view>

#include "actors/policy_client/adaptive_window.hpp"

namespace kernelmill {

/// Nothing when the text has none of the figures.
std::optional<server_load> parse_server_load(std::string_view text);

/// Returns "http://host:port/metrics" for the address of an API below that root.
std::string metrics_address(const std::string& base_url);

} // namespace kernelmill
