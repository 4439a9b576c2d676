#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill {

/// JSON Schema (draft 7) of a configuration file, from the table of keys.
nlohmann::ordered_json config_schema();

/// docs/reference/configuration.md, from the table of keys.
std::string config_reference();

} // namespace kernelmill
