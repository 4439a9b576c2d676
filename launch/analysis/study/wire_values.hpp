#pragma once

// Values of records as JSON has them.

#include <cmath>
#include <string>

#include <capnp/dynamic.h>

#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

namespace kernelmill::study {

inline std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

/// Null for what JSON cannot hold.
inline nlohmann::ordered_json number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}

/// An enumeration's value as a word.
template <class Enum>
std::string word(Enum x) {
  return enum_name(capnp::DynamicEnum{std::move(x)});
}

} // namespace kernelmill::study
