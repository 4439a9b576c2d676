#pragma once

// Where traces go and of which service: the keys of otlp.*, and the variables of OpenTelemetry that
// stand in where a key is empty.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/config/run_config.hpp"
#include "messages/error.hpp"

namespace kernelmill::trackers {

using name_values = std::vector<std::pair<std::string, std::string>>;

struct otlp_settings {
  std::string url;         ///< of the traces; empty: nothing is sent
  std::string why_nothing; ///< for the log, when a variable asks for what we do not do
  name_values headers;     ///< may hold keys: never into a log
  name_values resource;    ///< service.name first
  bool content = false;
  double share = 1;
  uint32_t timeout_ms = 5000;
};

/// The value of an environment variable; nothing when it is not set or empty.
using variable_reader = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> read_variable(const std::string& name);

/// Errors: "invalid_value" of what a key of the configuration says. What is wrong in
/// OpenTelemetry's own variables ends no run: they may be set for others.
expected<otlp_settings> resolve_otlp(const otlp_section& keys, const variable_reader& variable);

/// Reads "name=value,name=value", values percent-encoded; nothing when it is none.
std::optional<name_values> parse_name_values(const std::string& text);

} // namespace kernelmill::trackers
