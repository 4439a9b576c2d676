#pragma once

// One call of a tool, whatever way it came: in a server's own words or in the model's text.

#include <string>

namespace kernelmill {

struct tool_call {
  std::string id; ///< empty where neither server nor model gave one
  std::string name;
  std::string arguments; ///< JSON as it was written, broken or not

  bool operator==(const tool_call&) const = default;
};

} // namespace kernelmill
