#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/machine/accelerators.hpp"

namespace kernelmill::commands {

/// `none`: it is not there, and this machine has no use for it.
enum class finding_state : unsigned char { ok, none, warn, fail };

const char* to_string(finding_state x);

/// One line of `kernelmill doctor`.
struct finding {
  std::string name;
  finding_state state = finding_state::ok;
  std::string detail;
  std::string cost;   ///< what does not work because of it; empty when ok
  std::string remedy; ///< the next step; empty when ok
};

using findings = std::vector<finding>;

void examine_machine(findings& out); ///< OS, cores, memory, limits
void examine_tools(findings& out);   ///< compiler, helpers, python
/// Each, by building with it; `before` gets its name first.
void examine_compilers(findings& out, const std::function<void(const std::string&)>& before = {});
void examine_torch(findings& out);                              ///< what tasks of torch need
void examine_sandbox(findings& out);                            ///< each layer, by using it
void examine_counters(findings& out);                           ///< perf events
void examine_disk(findings& out, const std::string& directory); ///< file system and space

using kernelmill::accelerator_facts;
using kernelmill::find_accelerators;

/// A machine without a GPU lacks nothing, as the CPU backend needs none; what it has not is `none`.
/// One with a GPU is warned of what keeps it from being used. Never fails.
void examine_accelerators(findings& out, const accelerator_facts& facts);

} // namespace kernelmill::commands
