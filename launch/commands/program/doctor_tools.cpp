// What the machine has: programs, helpers, and the walls of the sandbox, by using them.

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "gpu/sandbox/sandbox.hpp"
#include "launch/commands/program/doctor.hpp"
#include "launch/config/paths.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/programs.hpp"

namespace kernelmill::commands {

namespace {

finding helper(const std::string& name) {
  auto path = helper_program(name);
  if (!path.empty()) return {name, finding_state::ok, path, {}, {}};
  return {name, finding_state::fail, "not found beside the program",
          "no candidate can be built or run", "build it: ninja -C build " + name};
}

finding optional_program(const std::string& name, const std::string& cost,
                         const std::string& remedy) {
  auto path = on_path(name);
  if (!path.empty()) return {name, finding_state::ok, path, {}, {}};
  return {name, finding_state::none, "not found", cost, remedy};
}

finding compiler(expected<spawner>& processes) {
  auto path = compile_section{}.compiler;
  auto version = processes ? output_of(*processes, path, "--version") : std::string{};
  version = version.substr(0, version.find('\n'));
  if (!version.empty()) return {"compiler", finding_state::ok, version, {}, {}};
  return {"compiler", finding_state::fail, path + " does not run",
          "no candidate can be built on the CPU backend",
          "apt-get install g++, or compile.compiler=PATH"};
}

// g++'s libraries for `sanitize` and `evaluation.sanitize` on the CPU backend. Its ThreadSanitizer
// does not find its place where the kernel moves mappings by more than 28 bits.
finding sanitizers(expected<spawner>& processes) {
  finding result{"sanitizers", finding_state::ok, {}, {}, {}};
  auto path = compile_section{}.compiler;
  for (const char* name : {"libasan.so", "libubsan.so", "libtsan.so"}) {
    auto option = std::string{"-print-file-name="} + name;
    auto found = processes ? output_of(*processes, path, option.c_str()) : std::string{};
    auto& list = found.starts_with('/') ? result.detail : result.remedy;
    list += (list.empty() ? "" : ", ") + std::string{name};
  }
  int bits = 0;
  std::ifstream{"/proc/sys/vm/mmap_rnd_bits"} >> bits;
  if (!result.remedy.empty())
    return {"sanitizers", finding_state::none, path + " has no " + result.remedy,
            "`sanitize` and evaluation.sanitize have no report on the CPU backend",
            "apt-get install libgcc-12-dev (of this g++'s version)"};
  if (bits > 28)
    return {"sanitizers", finding_state::warn,
            result.detail + "; vm.mmap_rnd_bits is " + std::to_string(bits),
            "racecheck may have no report on the CPU backend", "sysctl -w vm.mmap_rnd_bits=28"};
  return result;
}

} // namespace

void examine_tools(findings& out) {
  auto processes = start_spawner();
  out.push_back(compiler(processes));
  out.push_back(sanitizers(processes));
  for (const char* name : {"kernelmill-spawner", "kernelmill-referee", "kernelmill-candidate"})
    out.push_back(helper(name));
  out.push_back(optional_program("python3", "some tests and the Python client do not run",
                                 "install python3"));
}

void examine_sandbox(findings& out) {
  auto bwrap = find_bubblewrap();
  if (bwrap.empty()) {
    out.push_back({"bwrap", finding_state::fail, "not found", "no candidate can be built or run",
                   "apt-get install bubblewrap"});
    return;
  }
  out.push_back({"bwrap", finding_state::ok, bwrap, {}, {}});
  auto processes = start_spawner();
  if (!processes) {
    out.push_back({"sandbox", finding_state::fail, processes.error().message,
                   "no candidate can be built or run", processes.error().hint});
    return;
  }
  const auto required = evaluation_section{}.required_layers;
  sandbox walls{*processes};
  for (const auto& layer : walls.probe()) {
    bool needed = std::find(required.begin(), required.end(), layer.name) != required.end();
    finding x{"sandbox: " + layer.name, finding_state::ok, layer.detail, {}, {}};
    if (layer.state != layer_state::active) {
      x.state = needed ? finding_state::fail : finding_state::warn;
      x.cost = layer.cost;
      x.remedy = layer.remedy;
    }
    out.push_back(x);
  }
}

} // namespace kernelmill::commands
