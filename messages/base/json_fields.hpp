#pragma once

// Fields of JSON documents that may lack them, or hold something else there. Templates: this floor
// includes no JSON library.

#include <cstdint>
#include <string>

namespace kernelmill {

/// The text of a field; empty where there is none.
template <class Json>
std::string text_in(const Json& x, const char* key) {
  auto i = x.find(key);
  return i != x.end() && i->is_string() ? i->template get<std::string>() : std::string{};
}

template <class Json>
double number_in(const Json& x, const char* key) {
  auto i = x.find(key);
  return i != x.end() && i->is_number() ? i->template get<double>() : 0;
}

/// A whole number from 0 on; `otherwise` where there is none.
template <class Json>
uint64_t count_in(const Json& x, const char* key, uint64_t otherwise) {
  auto i = x.find(key);
  return i != x.end() && i->is_number_unsigned() ? i->template get<uint64_t>() : otherwise;
}

template <class Json>
bool flag_in(const Json& x, const char* key, bool otherwise) {
  auto i = x.find(key);
  return i != x.end() && i->is_boolean() ? i->template get<bool>() : otherwise;
}

} // namespace kernelmill
