#pragma once

// YAML of a suite as JSON, so that one reader serves both.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill {

/// Plain scalars become null, booleans and numbers as YAML 1.2 reads them, quoted ones texts.
/// Errors: "bad_problem" with `place` and the line: no YAML, no UTF-8, several documents, a key
/// that comes twice or is no text, more than 100,000 values (aliases count where they are used).
expected<nlohmann::ordered_json> json_of_yaml(const std::string& text, const std::string& place);

} // namespace kernelmill
