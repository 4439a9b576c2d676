#pragma once

#include <algorithm>
#include <string>

namespace kernelmill {

/// Takes off the addresses of a stack that Cap'n Proto's exceptions put behind their words.
inline std::string without_stack(std::string text) {
  text.resize(std::min(text.find("\nstack: "), text.size()));
  return text;
}

} // namespace kernelmill
