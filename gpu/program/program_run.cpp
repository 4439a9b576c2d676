#include "gpu/program/program_run.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include "gpu/referee/candidate_walls.hpp"
#include "gpu/referee/clock.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

// Descriptors inside.
constexpr int archive_fd = 6, go_fd = 7, reports_fd = 9;

constexpr size_t most_printed = size_t{16} << 20;
constexpr size_t kept_printed = size_t{16} << 10;
constexpr size_t most_reports = size_t{1} << 20;
constexpr uint64_t tmpfs_bytes = uint64_t{1} << 30;
constexpr uint64_t host_memory = uint64_t{8} << 30;
constexpr uint64_t gpu_host_memory = uint64_t{32} << 30;
constexpr int prepare_ms = 60'000;
constexpr int farewell_ms = 30'000;

constexpr const char* library_inside = "/.kernelmill/libkernelmill-program.so";

// What stands before the task's command runs as part of the sandbox, off the clock. The command
// gets neither the archive nor the descriptor that starts it. Parameters: the command, and what the
// library is to be told.
constexpr const char* run_script =
    "mkdir /tmp/program && cd /tmp/program && tar -xf - <&6 || exit 98\n"
    "exec 6<&-\n"
    "printf 'ready\\n' >&9\n"
    "read -r go <&7 || exit 98\n"
    "exec 7<&-\n"
    "LD_PRELOAD=/.kernelmill/libkernelmill-program.so\n"
    "NVTX_INJECTION64_PATH=/.kernelmill/libkernelmill-program.so\n"
    "KERNELMILL_PROGRAM=$2\n"
    "export LD_PRELOAD NVTX_INJECTION64_PATH KERNELMILL_PROGRAM\n"
    "exec /bin/sh -c \"$1\" </dev/null\n";

std::string fresh_secret() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return to_hex(bytes.data(), bytes.size());
}

std::string wishes_of(const program_place& slot, const program_command& x,
                      const std::string& secret) {
  std::string result = std::to_string(reports_fd) + "\n" + secret + "\n" +
                       std::string{to_string(x.timing.mode)} + "\n" +
                       (slot.cupti.empty() || x.timing.wall ? "-" : slot.cupti) + "\n";
  auto line = [](std::string name) {
    std::replace(name.begin(), name.end(), '\n', ' ');
    return name + "\n";
  };
  for (const auto& name : x.timing.include) result += "+" + line(name);
  for (const auto& name : x.timing.exclude) result += "-" + line(name);
  return result;
}

void add_gpu(sandbox_spec& spec, const program_place& slot) {
  spec.devices = gpu_device_nodes(slot.gpu_node);
  auto folder = slot.driver.substr(0, slot.driver.rfind('/'));
  std::string libraries = slot.library_path;
  bool visible = folder.starts_with("/usr/") || folder.starts_with("/lib");
  if (!visible && !folder.empty()) spec.mounts.push_back({folder, "/driver", false});
  libraries = (visible ? folder : "/driver") + (libraries.empty() ? "" : ":" + libraries);
  spec.environment.push_back("LD_LIBRARY_PATH=" + libraries);
  spec.environment.emplace_back("CUDA_CACHE_DISABLE=1");
  spec.limits.address_space = no_limit; // the driver reserves addresses without end
  spec.memory_bytes = gpu_host_memory;
}

sandbox_spec walls_of_program(const program_place& slot, const program_command& x,
                              const std::string& secret) {
  sandbox_spec spec;
  spec.argv = {"/bin/sh", "-c", run_script, "sh", x.text, wishes_of(slot, x, secret)};
  spec.environment = {"PATH=" + slot.path, "LC_ALL=C.UTF-8",          "HOME=/tmp",
                      "TMPDIR=/tmp",       "OMP_WAIT_POLICY=passive", "PYTHONDONTWRITEBYTECODE=1"};
  spec.mounts = slot.mounts;
  spec.mounts.push_back({program_library(), library_inside, false});
  spec.cpus = slot.cpus;
  spec.limits.open_files = 1024;
  spec.limits.file_size = tmpfs_bytes;
  spec.memory_bytes = host_memory;
  spec.process_count = 256;
  spec.tmpfs_bytes = tmpfs_bytes;
  if (!slot.gpu_node.empty()) add_gpu(spec, slot);
  return spec;
}

struct watched_pipe {
  descriptor read;
  std::string text;
  size_t total = 0;
  bool open = true;
  double latest = 0; // when something came

  void take(size_t kept) {
    std::array<char, 16384> part;
    auto n = read_retrying(read.get(), part.data(), part.size());
    if (n <= 0) {
      open = false;
      return;
    }
    latest = now_seconds();
    total += static_cast<size_t>(n);
    text.append(part.data(), static_cast<size_t>(n));
    if (text.size() > 2 * kept) text.erase(0, text.size() - kept); // the end says most
  }
};

// Reads both until the deadline, or until `enough`. False: the deadline passed.
template <class Enough>
bool read_both(watched_pipe& printed, watched_pipe& reports, double deadline, Enough enough) {
  while (!enough()) {
    double left = deadline - now_seconds();
    if (left <= 0) return false;
    std::array<pollfd, 2> all{{{printed.open ? printed.read.get() : -1, POLLIN, 0},
                               {reports.open ? reports.read.get() : -1, POLLIN, 0}}};
    int n = ::poll(all.data(), all.size(), static_cast<int>(std::min(left, 1.0) * 1e3) + 1);
    if (n <= 0) continue;
    if (all[0].revents != 0) printed.take(kept_printed);
    if (all[1].revents != 0) reports.take(most_reports);
  }
  return true;
}

tl::unexpected<error> not_run(const std::string& why) {
  return infrastructure_error("program_not_run", "failed to run a program: " + why,
                              "`kernelmill doctor` tries each layer of the sandbox");
}

} // namespace

std::string program_library() {
  std::error_code code;
  auto program = std::filesystem::read_symlink("/proc/self/exe", code).parent_path();
  return (program / ".." / "lib" / "kernelmill" / "libkernelmill-program.so")
      .lexically_normal()
      .string();
}

expected<program_outcome> run_program(sandbox& walls, const program_place& slot,
                                      const program_command& command) {
  program_outcome result;
  result.secret = fresh_secret();
  auto archive = memory_file(*command.archive);
  KM_TRY(archive);
  auto out = make_pipe();
  auto said = make_pipe();
  auto go = make_pipe();
  if (!out.read || !said.read || !go.read || result.secret.empty())
    return not_run("this process has no descriptor left");
  auto spec = walls_of_program(slot, command, result.secret);
  spec.descriptors = {{out.write.get(), 1},
                      {out.write.get(), 2},
                      {archive->get(), archive_fd},
                      {go.read.get(), go_fd},
                      {said.write.get(), reports_fd}};
  auto started = walls.start(spec);
  KM_TRY(started);
  for (auto* x : {&out.write, &said.write, &go.read}) x->reset();
  watched_pipe printed{std::move(out.read), {}};
  watched_pipe reports{std::move(said.read), {}};
  auto both_ended = [&] { return !printed.open && !reports.open; };
  bool ready = read_both(printed, reports, now_seconds() + prepare_ms * 1e-3,
                         [&] { return reports.text.starts_with("ready\n") || both_ended(); }) &&
               reports.text.starts_with("ready\n");
  if (!ready) return not_run("its files could not be unpacked: " + printed.text.substr(0, 400));
  double begun = now_seconds();
  if (write_retrying(go.write.get(), "go\n", 3) != 3) return not_run("its sandbox has ended");
  double deadline = begun + command.deadline_ms * 1e-3;
  auto flooded = [&] { return printed.total + reports.total > most_printed; };
  bool ended = read_both(printed, reports, deadline, [&] { return both_ended() || flooded(); });
  result.flooded = flooded();
  if (!ended || result.flooded) {
    result.timed_out = !ended;
    started->kill();
  }
  auto left = std::max(1, static_cast<int>((deadline - now_seconds()) * 1e3));
  auto status = started->wait(result.timed_out || result.flooded ? farewell_ms : left);
  result.seconds = now_seconds() - begun;
  if (!status && status.error().category == "timeout") {
    result.timed_out = true; // it closed its outputs and went on
    started->kill();
    status = started->wait(farewell_ms);
  }
  KM_TRY(status);
  result.status = *status;
  result.out_of_memory = started->out_of_memory();
  result.killed = status->signal == SIGKILL && !result.timed_out && !result.flooded &&
                  !result.out_of_memory && started->ended_from_outside();
  result.printed = std::move(printed.text);
  result.told_seconds = std::max(0.0, reports.latest - begun);
  result.reports = std::move(reports.text);
  return result;
}

} // namespace kernelmill
