// What the machine has: programs, helpers, and the walls of the sandbox, by using them.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "gpu/sandbox/sandbox.hpp"
#include "launch/commands/doctor_parts.hpp"
#include "launch/config/paths.hpp"
#include "launch/config/run_config.hpp"

namespace kernelmill::commands {

std::string on_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string path = variable ? variable : "/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    auto end = std::min(path.find(':', begin), path.size());
    auto file = path.substr(begin, end - begin) + "/" + name;
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0)
      return file;
    begin = end + 1;
  }
  return {};
}

std::string output_of(spawner& processes, const std::string& program, const std::string& argument) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return {};
  process_spec spec;
  spec.argv = {program, argument};
  spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  spec.descriptors = {{pipe_ends[1], 1}};
  auto started = processes.start(spec);
  ::close(pipe_ends[1]);
  std::string text;
  if (started) {
    char part[4096];
    for (ssize_t n; (n = ::read(pipe_ends[0], part, sizeof part)) > 0 && text.size() < 65536;)
      text.append(part, static_cast<size_t>(n));
    (void)started->wait(5000);
  }
  ::close(pipe_ends[0]);
  return text;
}

expected<spawner> start_spawner() {
  auto program = helper_program("kernelmill-spawner");
  if (program.empty())
    return infrastructure_error("spawner_failed",
                                "failed to start kernelmill-spawner: it is not beside the program",
                                "build it: ninja -C build kernelmill-spawner");
  return spawner::launch(program);
}

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

} // namespace

void examine_tools(findings& out) {
  auto processes = start_spawner();
  out.push_back(compiler(processes));
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
