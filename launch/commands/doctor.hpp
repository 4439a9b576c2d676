#pragma once

#include <string>
#include <vector>

namespace kernelmill::commands {

enum class finding_state : unsigned char { ok, warn, fail };

/// One line of `kernelmill doctor`.
struct finding {
  std::string name;
  finding_state state = finding_state::ok;
  std::string detail;
  std::string cost;   ///< what does not work because of it; empty when ok
  std::string remedy; ///< the next step; empty when ok
};

using findings = std::vector<finding>;

void examine_machine(findings& out);                            ///< OS, cores, memory, limits
void examine_tools(findings& out);                              ///< compiler, helpers, python
void examine_sandbox(findings& out);                            ///< each layer, by using it
void examine_counters(findings& out);                           ///< perf events
void examine_disk(findings& out, const std::string& directory); ///< file system and space
void examine_accelerators(findings& out);                       ///< CUDA and HIP libraries

} // namespace kernelmill::commands
