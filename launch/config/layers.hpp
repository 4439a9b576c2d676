#pragma once

// Layers of raw values, keyed by dotted name. Internal to launch/config.

#include <map>
#include <string>
#include <vector>

#include "launch/config/json_text.hpp"
#include "launch/config/load.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

struct raw_value {
  nlohmann::json value;
  std::string origin;    ///< for people: "configs/a.json:12"
  std::string directory; ///< a relative path in it starts here
};

struct raw_layers {
  std::map<std::string, raw_value> values;
  std::vector<error> problems;
};

/// Reads a list that is no JSON: `a`, `a,b`, or `[a, b]` after a shell took the quotes.
nlohmann::json as_list(std::string text);

void add_file_layer(raw_layers& layers, const json_text& file);
void add_environment_layer(raw_layers& layers, const config_sources& sources);
void add_override(raw_layers& layers, const std::string& text, const std::string& directory);

} // namespace kernelmill
