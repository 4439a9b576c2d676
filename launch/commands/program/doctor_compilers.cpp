// Whether candidates can be built and tasks of the contract `torch` judged here, by trying.

#include <utility>

#include "launch/commands/program/doctor.hpp"
#include "launch/machine/compiler_probes.hpp"
#include "launch/machine/python.hpp"

namespace kernelmill::commands {

namespace {

finding shown(const compiler_probe& x, finding_state failure) {
  if (!x.failure) return {"builds: " + x.name, finding_state::ok, x.made, {}, {}};
  return {"builds: " + x.name, failure, x.failure->message, x.cost, x.failure->hint};
}

} // namespace

void examine_compilers(findings& out, const std::function<void(const std::string&)>& before) {
  auto failure = finding_state::fail; // of the first, which is needed everywhere
  for (const auto& x : probe_compilers(before))
    out.push_back(shown(x, std::exchange(failure, finding_state::warn)));
}

// The rest of Kernelmill needs no Python: without one this is a note, not a failure. An interpreter
// that imports torch may still lack what extensions are built with.
void examine_torch(findings& out) {
  auto python = find_python({});
  out.push_back(
      {"torch",
       finding_state::ok,
       python ? describe(*python) + ": " + python->path
              : "none, needed by tasks of the contract torch only; " + python.error().message,
       {},
       {}});
  if (!python) return;
  if (auto x = probe_torch_extension(*python)) out.push_back(shown(*x, finding_state::warn));
}

} // namespace kernelmill::commands
