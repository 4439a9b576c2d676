#pragma once

// Numbers of things in messages.

#include <concepts>
#include <string>
#include <string_view>

namespace kernelmill {

/// "1 run", "3 runs"; `many` of a noun whose plural has another end: "2 entries".
template <std::integral T>
std::string counted(T n, std::string_view one, std::string_view many = {}) {
  auto result = std::to_string(n) + " ";
  if (n == 1 || many.empty()) result += one;
  if (n != 1) result += many.empty() ? std::string_view{"s"} : many;
  return result;
}

} // namespace kernelmill
