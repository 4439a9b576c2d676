#pragma once

// INTERNAL to storage/: values of records as JSON.

#include <cmath>
#include <string>

#include <capnp/blob.h>

#include "messages/base/json_value.hpp"

namespace kernelmill {

inline nlohmann::ordered_json text_of(capnp::Text::Reader x) {
  return std::string{x.begin(), x.size()};
}

/// Numbers that JSON cannot hold become null.
inline nlohmann::ordered_json number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}

} // namespace kernelmill
