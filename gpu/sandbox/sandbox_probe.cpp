#include <cerrno>
#include <csignal>
#include <map>
#include <sstream>

#include <unistd.h>

#include "gpu/sandbox/sandbox_parts.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr int probe_deadline_ms = 10'000;
constexpr int probe_tries = 3;
constexpr uint64_t probe_memory_bytes = 64 << 20;
constexpr uint64_t probe_processes = 16;
constexpr uint64_t probe_address_space = uint64_t{3} << 30;

struct probe_outcome {
  exit_status status;
  bool out_of_memory = false;
  std::map<std::string, long> said;
};

expected<probe_outcome> try_once(sandbox& walls, const char* what, sandbox_spec spec) {
  auto ends = make_pipe();
  spec.argv = {helper_path, "probe", what};
  spec.descriptors = {{ends.write.get(), 1}};
  auto started = walls.start(spec);
  KM_TRY(started);
  ends.write.reset();
  auto status = started->wait(probe_deadline_ms);
  KM_TRY(status);
  probe_outcome result{*status, started->out_of_memory(), {}};
  char text[4096];
  auto n = read_retrying(ends.read.get(), text, sizeof text);
  std::istringstream in{std::string{text, static_cast<size_t>(n > 0 ? n : 0)}};
  std::string name;
  for (long value = 0; in >> name >> value;) result.said[name] = value;
  return result;
}

// A probe that somebody killed before it could say anything shows nothing of the walls.
bool was_cut_off(const expected<probe_outcome>& x) {
  if (!x) return true;
  constexpr int killed = 128; // and above: what a shell or bubblewrap says of a signal
  return x->said.empty() && !x->out_of_memory && (x->status.signal != 0 || x->status.code > killed);
}

expected<probe_outcome> try_in_sandbox(sandbox& walls, const char* what, const sandbox_spec& spec) {
  auto result = try_once(walls, what, spec);
  for (int again = 1; again < probe_tries && was_cut_off(result); ++again)
    result = try_once(walls, what, spec);
  return result;
}

std::string cost_of(const std::string& name) {
  if (name == "namespaces") return "candidates could see the machine's files and processes";
  if (name == "no_network") return "candidates could reach the network";
  if (name == "seccomp") return "candidates could make any system call";
  if (name == "cgroup_memory") return "memory bombs end by address-space limits, not by a cgroup";
  if (name == "cgroup_pids") return "fork bombs end by RLIMIT_NPROC, not by a cgroup";
  if (name == "rlimits") return "candidates could use all of the machine";
  if (name == "landlock") return "one lock fewer between a candidate and the init of its sandbox";
  return "inside and outside the walls it is the same user"; // separate_user
}

sandbox_layer layer(const char* name, layer_state state, std::string detail,
                    std::string remedy = {}) {
  return {name, state, std::move(detail), std::move(remedy), cost_of(name)};
}

sandbox_layer judge(const char* name, bool holds, std::string good, std::string bad,
                    std::string remedy = {}) {
  return layer(name, holds ? layer_state::active : layer_state::missing,
               holds ? std::move(good) : std::move(bad), holds ? std::string{} : std::move(remedy));
}

void judge_walls(std::vector<sandbox_layer>& out, std::map<std::string, long> said, bool root) {
  bool apart = said["pid"] > 0 && said["pid"] < 100 && said["host_files"] == 0 &&
               said["root_writable"] == 0 && said["init_visible"] == 0;
  out.push_back(judge("namespaces", apart, "bubblewrap: own processes, mounts, network, IPC",
                      "a process in the sandbox still sees files or processes of this machine, or "
                      "the sandbox's own init"));
  out.push_back(judge("no_network", said["interfaces"] == 0 && said["socket"] == EPERM,
                      "no interface but lo; sockets are refused",
                      std::to_string(said["interfaces"]) +
                          " network interfaces; socket gave errno " +
                          std::to_string(said["socket"])));
  out.push_back(judge("seccomp", said["trace"] == EPERM && said["new_namespace"] != 0,
                      "tracing and new namespaces are refused",
                      "tracing or new namespaces are possible in the sandbox"));
  out.push_back(judge("rlimits", said["address_space"] == static_cast<long>(probe_address_space),
                      "address space, files, processes, CPU time",
                      "the limit of address space does not hold"));
  auto uid = static_cast<uid_t>(said["uid"]);
  if (!root)
    out.push_back(layer("separate_user", layer_state::weaker,
                        "in a user namespace as nobody, but outside the number of this user",
                        "run Kernelmill as root to give each sandbox a user of its own"));
  else
    out.push_back(judge("separate_user", uid != 0,
                        "user " + std::to_string(uid) + ", fresh for each",
                        "the sandbox runs as root"));
}

// Weaker, not missing: what it guards, the init of the sandbox, is hidden as well.
void judge_landlock(std::vector<sandbox_layer>& out, std::map<std::string, long> said) {
  auto version = said["landlock"];
  if (version >= 1)
    out.push_back(layer("landlock", layer_state::active,
                        "version " + std::to_string(version) +
                            ": candidates write to devices, /tmp and their own /proc alone"));
  else
    out.push_back(layer("landlock", layer_state::weaker,
                        "the kernel's answer is errno " + std::to_string(-version),
                        "Linux 5.13 or newer with landlock in the kernel's lsm= list; in a "
                        "container, a seccomp profile that lets landlock_* through"));
}

constexpr const char* cgroup_remedy =
    "run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes, with "
    "KERNELMILL_CGROUP naming its directory";

// The group took the limit, and the probe went beyond it.
constexpr const char* not_held_remedy = "none by a setting: the kernel took the limit and did not "
                                        "hold it, or does not tell that it did; "
                                        "a machine with cgroup 2 does both";

void judge_memory(std::vector<sandbox_layer>& out, sandbox& walls, const cgroup_backend& groups) {
  if (!groups.limits_memory()) {
    out.push_back(layer("cgroup_memory", layer_state::weaker,
                        groups.detail() + "; RLIMIT_AS limits each process alone", cgroup_remedy));
    return;
  }
  sandbox_spec spec;
  spec.memory_bytes = probe_memory_bytes;
  auto outcome = try_in_sandbox(walls, "memory", spec);
  bool holds = outcome && outcome->status.signal == SIGKILL && outcome->out_of_memory;
  out.push_back(judge("cgroup_memory", holds, groups.detail(),
                      groups.detail() + ", but the limit does not hold", not_held_remedy));
}

void judge_processes(std::vector<sandbox_layer>& out, sandbox& walls,
                     const cgroup_backend& groups) {
  if (!groups.limits_processes()) {
    out.push_back(layer("cgroup_pids", layer_state::weaker,
                        groups.detail() + "; RLIMIT_NPROC limits processes", cgroup_remedy));
    return;
  }
  sandbox_spec spec;
  spec.process_count = probe_processes;
  auto outcome = try_in_sandbox(walls, "processes", spec);
  bool holds = outcome && outcome->said.contains("processes") &&
               outcome->said["processes"] < static_cast<long>(probe_processes);
  out.push_back(judge("cgroup_pids", holds, groups.detail(),
                      groups.detail() + ", but the limit does not hold", not_held_remedy));
}

} // namespace

std::string layers_that_fell(const std::vector<sandbox_layer>& layers) {
  std::string result;
  for (const auto& x : layers)
    if (x.state != layer_state::active)
      result += (result.empty() ? "sandbox: " : "; ") + x.name +
                (x.state == layer_state::weaker ? " is weaker here (" : " is missing here (") +
                x.cost + ")";
  return result.empty() ? result : result + "; `kernelmill doctor` says what helps";
}

std::vector<std::string> layers_that_stood(const std::vector<sandbox_layer>& layers) {
  std::vector<std::string> result;
  for (const auto& x : layers)
    if (x.state == layer_state::active) result.push_back(x.name);
  return result;
}

std::vector<sandbox_layer> sandbox::probe() {
  std::vector<sandbox_layer> result;
  sandbox_spec spec;
  spec.limits.address_space = probe_address_space;
  auto walls = try_in_sandbox(*this, "walls", spec);
  if (!walls) {
    for (auto* name : {"namespaces", "no_network", "seccomp", "rlimits", "separate_user",
                       "landlock", "cgroup_memory", "cgroup_pids"})
      result.push_back(
          layer(name, layer_state::missing, walls.error().message, walls.error().hint));
    return result;
  }
  judge_walls(result, walls->said, state_->machine.root);
  judge_landlock(result, walls->said);
  judge_memory(result, *this, state_->groups);
  judge_processes(result, *this, state_->groups);
  return result;
}

} // namespace kernelmill
