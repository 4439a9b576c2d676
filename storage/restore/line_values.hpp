#pragma once

// INTERNAL to storage/restore/: values of a line of a journal. Each throws a std::exception that
// says what is missing or wrong.

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include <capnp/schema.h>

#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

namespace kernelmill::line_values {

using json = nlohmann::ordered_json;

// Null stands for what JSON cannot hold.
inline double real(const json& x) {
  return x.is_null() ? std::numeric_limits<double>::quiet_NaN() : x.get<double>();
}

inline std::string text(const json& x, const char* key) {
  return x.at(key).get<std::string>();
}

// The library cuts off what does not fit.
template <class T>
T fitting(const json& x, const char* key) {
  bool fits = x.is_number_unsigned()  ? std::in_range<T>(x.get<uint64_t>())
              : x.is_number_integer() ? std::in_range<T>(x.get<int64_t>())
                                      : false;
  if (!fits) throw std::invalid_argument{"'" + std::string{key} + "' is no number that can be"};
  return x.get<T>();
}

inline uint32_t whole(const json& x, const char* key) {
  return fitting<uint32_t>(x.at(key), key);
}

// Keys that lines of older versions lack.
inline std::string text_if(const json& x, const char* key) {
  return x.value(key, std::string{});
}

// Names that commands print as they are.
inline std::string name_in(std::string x) {
  for (size_t i = 0; i < x.size(); ++i) {
    auto c = static_cast<unsigned char>(x[i]);
    bool later = c == 0xc2 && i + 1 < x.size() && static_cast<unsigned char>(x[i + 1]) < 0xa0;
    if (c < 0x20 || c == 0x7f || later)
      throw std::invalid_argument{"a name has control characters"};
  }
  return x;
}

template <class Enum>
Enum value_of(const std::string& word) {
  for (auto x : capnp::Schema::from<Enum>().getEnumerants())
    if (snake_case(x.getProto().getName().cStr()) == word) return static_cast<Enum>(x.getOrdinal());
  throw std::invalid_argument{"'" + word + "' is no word of this key"};
}

} // namespace kernelmill::line_values
