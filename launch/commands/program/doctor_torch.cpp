// Whether tasks of the contract `torch` can be judged here, by importing torch.

#include "launch/commands/program/doctor.hpp"
#include "launch/machine/python.hpp"

namespace kernelmill::commands {

// The rest of Kernelmill needs no Python: without one this is a note, not a failure.
void examine_torch(findings& out) {
  auto python = find_python({});
  out.push_back(
      {"torch",
       finding_state::ok,
       python ? describe(*python) + ": " + python->path
              : "none, needed by tasks of the contract torch only; " + python.error().message,
       {},
       {}});
}

} // namespace kernelmill::commands
