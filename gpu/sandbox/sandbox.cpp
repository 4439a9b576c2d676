#include "gpu/sandbox/sandbox.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

#include "gpu/process/core_use.hpp"
#include "gpu/process/pidfd.hpp"
#include "gpu/sandbox/sandbox_parts.hpp"
#include "gpu/sandbox/seccomp.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

// The system's first: it may be the one that a security profile allows.
std::string find_bubblewrap() {
  std::error_code code;
  auto program = fs::read_symlink("/proc/self/exe", code).parent_path();
  auto bundled = (program / ".." / "libexec" / "kernelmill" / "bwrap").lexically_normal().string();
  for (auto& x : {std::string{"/usr/bin/bwrap"}, std::string{"/usr/local/bin/bwrap"},
                  std::string{"/bin/bwrap"}, bundled})
    if (::access(x.c_str(), X_OK) == 0) return x;
  return {};
}

namespace {

// Bubblewrap needs about 5 ms; a machine that swaps may need seconds.
constexpr int begin_deadline_ms = 20'000;

// How long a destructor waits for the kernel to free what a killed sandbox held.
constexpr int farewell_ms = 2'000;

// Everything that comes before the end of the stream or the deadline, at most 8 KiB.
std::string drain(int fd, int deadline_ms) {
  std::string result;
  std::array<char, 1024> part;
  while (result.size() < 8192 && wait_readable(fd, deadline_ms)) {
    auto n = read_retrying(fd, part.data(), part.size());
    if (n <= 0) break;
    result.append(part.data(), static_cast<size_t>(n));
  }
  while (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

// The process that is number 1 inside: when it dies, the kernel kills all others there before
// anybody is told. Empty when bubblewrap did not say or the process is gone.
descriptor open_namespace_init(int info_fd, int bwrap_pid) {
  auto text = drain(info_fd, begin_deadline_ms);
  auto at = text.find("\"child-pid\":");
  int pid = 0;
  if (at == text.npos || std::sscanf(text.c_str() + at + 12, "%d", &pid) != 1 || pid <= 1)
    return {};
  descriptor handle{open_pidfd(pid)};
  // The number could have been used again since: it must still be bubblewrap's child.
  auto stat = stat_behind_name("/proc/" + std::to_string(pid));
  int parent = 0;
  std::sscanf(stat.c_str(), " %*c %d", &parent);
  return parent == bwrap_pid ? std::move(handle) : descriptor{};
}

tl::unexpected<error> unavailable(const std::string& why, const std::string& hint) {
  return infrastructure_error("sandbox_unavailable", "failed to start a sandbox: " + why, hint);
}

} // namespace

// -- sandboxed_child --------------------------------------------------------------------------

struct sandboxed_child::state {
  child bwrap;
  descriptor init;
  cgroup group;
  bool out_of_memory = false;
  bool ended_from_outside = false;
  std::optional<bool> killed_for_memory;
  std::optional<exit_status> ended;

  void kill() noexcept {
    if (!init || signal_pidfd(init.get(), SIGKILL) != 0) {
      bwrap.kill(); // its children die with it: --die-with-parent
      group.kill();
    }
  }

  ~state() {
    if (ended) return;
    kill();
    if (!bwrap.wait(farewell_ms)) group.kill();
  }
};

sandboxed_child::sandboxed_child(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

sandboxed_child::sandboxed_child(sandboxed_child&&) noexcept = default;
sandboxed_child& sandboxed_child::operator=(sandboxed_child&&) noexcept = default;
sandboxed_child::~sandboxed_child() = default;

expected<exit_status> sandboxed_child::wait(int deadline_ms) {
  if (state_->ended) return *state_->ended;
  auto status = state_->bwrap.wait(deadline_ms);
  if (!status) return status;
  state_->ended_from_outside = status->signal != 0;
  if (status->code > 128 && status->code <= 128 + SIGRTMAX)
    status = exit_status{-1, status->code - 128};
  state_->out_of_memory = state_->group.out_of_memory();
  state_->killed_for_memory = state_->group.lost_members();
  state_->ended = *status;
  return status;
}

void sandboxed_child::kill() noexcept {
  state_->kill();
}

bool sandboxed_child::running() const {
  return !state_->ended && state_->bwrap.running();
}

int sandboxed_child::pid() const noexcept {
  return state_->bwrap.pid();
}

bool sandboxed_child::out_of_memory() const noexcept {
  return state_->out_of_memory;
}

bool sandboxed_child::ended_from_outside() const noexcept {
  return state_->ended_from_outside;
}

std::optional<bool> sandboxed_child::killed_for_memory() const noexcept {
  return state_->killed_for_memory;
}

// -- sandbox ----------------------------------------------------------------------------------

sandbox::state::state(spawner& x) : processes(x) {
  machine.bwrap = find_bubblewrap();
  machine.helper = x.program();
  machine.root = ::geteuid() == 0;
  for (auto* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code ignored;
    if (fs::is_symlink(name, ignored))
      machine.links.emplace_back(name, fs::read_symlink(name, ignored));
    else if (fs::is_directory(name, ignored))
      machine.system.push_back({name, name, false});
  }
}

long sandbox::state::next_uid() {
  if (!machine.root) return -1;
  // 2^30 is far above any user that exists; process numbers have at most 22 bits.
  return (1L << 30) + (static_cast<long>(::getpid() & 0x3fffff) << 8) + (counter++ & 0xff);
}

sandbox::sandbox(spawner& processes) : state_(std::make_unique<state>(processes)) {
  // nop
}

sandbox::~sandbox() = default;

spawner& sandbox::processes() noexcept {
  return state_->processes;
}

namespace {

struct start_pipes {
  pipe_ends status;
  pipe_ends complaint; // bubblewrap's own stderr
  pipe_ends info;
  descriptor seccomp;
};

expected<start_pipes> make_pipes(const sandbox_spec& spec) {
  start_pipes x{make_pipe(), make_pipe(), make_pipe(), {}};
  if (!x.status.read || !x.complaint.read || !x.info.read)
    return infrastructure_error("no_descriptors",
                                "failed to start a sandbox: this process has no descriptor left",
                                "raise the limit of open files (ulimit -n)");
  auto program = sandbox_seccomp_program(!spec.devices.empty(), spec.may_use_loopback);
  KM_TRY(program);
  x.seccomp = std::move(*program);
  return x;
}

// Numbers for our own descriptors, above those of the spec, and who gets what.
private_descriptors place(const sandbox_spec& spec, const start_pipes& pipes, process_spec& outer,
                          enter_arguments& enter) {
  private_descriptors fds;
  int next = 3;
  for (auto& [ours, theirs] : spec.descriptors) next = std::max(next, theirs + 1);
  auto give = [&](int ours) {
    outer.descriptors.emplace_back(ours, next);
    return next++;
  };
  fds.status = give(pipes.status.write.get());
  fds.info = give(pipes.info.write.get());
  fds.seccomp = give(pipes.seccomp.get());
  for (auto& x : spec.files) fds.files.push_back(give(x.source));
  outer.descriptors.emplace_back(pipes.complaint.write.get(), 2);
  for (auto& [ours, theirs] : spec.descriptors) {
    if (theirs == 2) {
      fds.error = give(ours);
      continue;
    }
    outer.descriptors.emplace_back(ours, theirs);
    if (theirs > 2) enter.keep.push_back(theirs);
  }
  enter.status_fd = fds.status;
  enter.stderr_fd = fds.error;
  return fds;
}

// Waits until the target has begun: "R" and the end of the stream.
expected<void> await_begin(start_pipes& pipes, const sandbox_spec& spec) {
  auto text = drain(pipes.status.read.get(), begin_deadline_ms);
  if (text == "R") return {};
  if (!text.empty())
    return infrastructure_error("cannot_execute", "failed to start " + spec.argv[0] +
                                                      " in a sandbox: " + text.substr(1));
  auto complaint = drain(pipes.complaint.read.get(), begin_deadline_ms);
  if (complaint.empty()) complaint = "bubblewrap ended without a word";
  return unavailable(complaint, sandbox_remedy(complaint));
}

} // namespace

void sandbox::keep_to(std::vector<int> cpus) {
  state_->cpus = std::move(cpus);
}

expected<sandboxed_child> sandbox::start(const sandbox_spec& spec) {
  if (state_->machine.bwrap.empty())
    return unavailable("bubblewrap is not installed", "apt install bubblewrap");
  if (spec.argv.empty())
    return infrastructure_error("bad_process_spec", "failed to start a sandbox: no program");
  auto pipes = make_pipes(spec);
  KM_TRY(pipes);
  auto group = state_->groups.create(spec.memory_bytes, spec.process_count);
  KM_TRY(group);

  process_spec outer;
  enter_arguments enter;
  auto fds = place(spec, *pipes, outer, enter);
  enter.uid = spec.forks_sandboxes ? -1 : state_->next_uid();
  enter.limits = limits_of(spec);
  enter.environment = spec.environment;
  enter.argv = spec.argv;
  outer.argv = bubblewrap_arguments(state_->machine, spec, fds, enter);
  outer.cpus = spec.cpus.empty() ? state_->cpus : spec.cpus;
  outer.cgroups = group->directories();
  auto bwrap = state_->processes.start(outer);
  KM_TRY(bwrap);
  for (auto* x : {&pipes->status, &pipes->complaint, &pipes->info}) x->write.reset();

  auto result = std::make_unique<sandboxed_child::state>();
  result->group = std::move(*group);
  result->bwrap = std::move(*bwrap);
  KM_TRY(await_begin(*pipes, spec));
  result->init = open_namespace_init(pipes->info.read.get(), result->bwrap.pid());
  return sandboxed_child{std::move(result)};
}

} // namespace kernelmill
