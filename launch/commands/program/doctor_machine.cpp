// What the machine is: the checks of `doctor` that only look.

#include <arpa/inet.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "gpu/process/machine_work.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/program/doctor.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill::commands {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

std::string value_after(const std::string& path, const std::string& prefix) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(prefix)) {
      auto at = line.find_first_of(":=");
      auto begin = line.find_first_not_of(" \t\"", at + 1);
      if (begin == std::string::npos) return {};
      return line.substr(begin, line.find_last_not_of(" \t\"") - begin + 1);
    }
  return {};
}

void examine_system(findings& out) {
  utsname name{};
  ::uname(&name);
  auto system = value_after("/etc/os-release", "PRETTY_NAME");
  out.push_back({"system",
                 finding_state::ok,
                 fmt::format("{}, Linux {} {}", system.empty() ? "unknown" : system, name.release,
                             name.machine),
                 {},
                 {}});
  if (std::string_view{name.machine} != "x86_64")
    out.push_back({"architecture", finding_state::warn, name.machine,
                   "Kernelmill is tested on x86_64 only", "use an x86_64 machine"});
}

void examine_cores(findings& out) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int usable = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  auto model = value_after("/proc/cpuinfo", "model name");
  finding x{"cores",
            finding_state::ok,
            fmt::format("{} usable, {}", usable, model.empty() ? "unknown model" : model),
            {},
            {}};
  if (usable < 2) {
    x.state = finding_state::warn;
    x.cost = "timings share the one core with everything else";
    x.remedy = "run on a machine with two cores or more";
  }
  out.push_back(x);
}

// Since the machine began, which is long enough to tell.
void examine_host(findings& out) {
  constexpr double plainly = 1; // percent
  double percent = stolen_percent(machine_work{}, machine_work_now());
  if (percent < plainly) return;
  out.push_back(
      {"host", finding_state::warn,
       fmt::format("took {:.1f} % of the processors' time for which this virtual machine "
                   "had work since it began",
                   percent),
       "beside busy programs a candidate may be read as slower than it is, or not be timed",
       "a machine whose processors are its own; verdicts have the share as `stolen`"});
}

// Whether timed processes can be ahead of others, as the referees try to have it.
void examine_priority(findings& out) {
  constexpr int timed_nice = -10;
  int was = ::getpriority(PRIO_PROCESS, 0);
  finding x{"priority", finding_state::ok, "timed processes go ahead of other programs", {}, {}};
  if (::setpriority(PRIO_PROCESS, 0, timed_nice) == 0) {
    (void)::setpriority(PRIO_PROCESS, 0, was);
  } else {
    x.state = finding_state::warn;
    x.detail = fmt::format("cannot be raised: {}", std::strerror(errno));
    x.cost = "beside busy programs a candidate may be read as slower than it is";
    x.remedy = "CAP_SYS_NICE (in a container, for root: --cap-add SYS_NICE), or cores that other "
               "programs keep off";
  }
  out.push_back(x);
}

void examine_memory(findings& out) {
  auto available =
      std::strtod(value_after("/proc/meminfo", "MemAvailable").c_str(), nullptr) * 1024;
  finding x{"memory", finding_state::ok, cli::format_bytes(available) + " available", {}, {}};
  if (available < 2e9) {
    x.state = finding_state::warn;
    x.cost = "builds of large candidates may run out of memory";
    x.remedy = "lower compile.slots and compile.memory_mb";
  }
  out.push_back(x);
}

void examine_files(findings& out) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  finding x{"open files",
            finding_state::ok,
            fmt::format("at most {} ({} hard)", limit.rlim_cur, limit.rlim_max),
            {},
            {}};
  if (limit.rlim_cur < 1024) {
    x.state = finding_state::warn;
    x.cost = "a policy server with many requests in flight needs a socket for each";
    x.remedy = "ulimit -n 4096";
  }
  out.push_back(x);
}

struct file_system {
  long magic;
  const char* name;
  bool remote;
};

constexpr file_system file_systems[] = {
    {0xEF53, "ext4", false},
    {0x58465342, "xfs", false},
    {0x9123683E, "btrfs", false},
    {0x01021994, "tmpfs", false},
    {0x794c7630, "overlay", false},
    {0x2FC12FC1, "zfs", false},
    {0x9fa0, "proc", false},
    {0x62656572, "sysfs", false},
    {0x6969, "nfs", true},
    {0x65735546, "fuse", true},
    {0x0BD00BD0, "lustre", true},
    {0x47504653, "gpfs", true},
    {0x517B, "smb", true},
    {static_cast<long>(0xFF534D42), "cifs", true},
    {static_cast<long>(0xFE534D42), "smb2", true},
    {0x00c36400, "ceph", true},
    {0x01021997, "9p", true},
    {0x19830326, "beegfs", true},
};

/// The directory itself or the closest one above it that exists.
std::string existing(const std::string& directory) {
  std::error_code code;
  auto path = std::filesystem::absolute(directory, code);
  while (!std::filesystem::exists(path, code) && path.has_relative_path())
    path = path.parent_path();
  return path.string();
}

/// Makes and removes a folder in `directory`; 0 or an errno. Rights alone do not tell: below /proc
/// the administrator may write, and no folder can be made.
int try_folder(const std::string& directory) {
  auto name = directory + "/.kernelmill-doctor-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return errno;
  ::rmdir(name.c_str());
  return 0;
}

/// perf_event_open of one hardware counter of this process.
int try_counter(uint64_t event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  auto descriptor = static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (descriptor < 0) return errno;
  ::close(descriptor);
  return 0;
}

/// A connection to this process itself; 0 or an errno.
int try_loopback() {
  descriptor server{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  descriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&here);
  socklen_t size = sizeof here;
  timeval patience{2, 0}; // where a firewall swallows it
  bool ok = server && client && ::bind(server.get(), address, size) == 0 &&
            ::listen(server.get(), 1) == 0 && ::getsockname(server.get(), address, &size) == 0 &&
            ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
            ::connect(client.get(), address, size) == 0;
  return ok ? 0 : errno;
}

void examine_loopback(findings& out) {
  finding x{"loopback", finding_state::ok, "127.0.0.1 takes connections", {}, {}};
  if (int code = try_loopback(); code != 0) {
    x.state = finding_state::fail;
    x.detail = fmt::format("a connection to 127.0.0.1 fails: {}", std::strerror(code));
    x.cost = "scripted policies, policy servers of this machine, the page and `serve` do not work";
    x.remedy = "ip link set lo up; else see what firewall or container keeps 127.0.0.1 away";
  }
  out.push_back(x);
}

} // namespace

void examine_machine(findings& out) {
  examine_system(out);
  examine_cores(out);
  examine_host(out);
  examine_priority(out);
  examine_memory(out);
  examine_files(out);
  examine_loopback(out);
}

void examine_counters(findings& out) {
  auto paranoid = first_line("/proc/sys/kernel/perf_event_paranoid");
  finding x{"perf events", finding_state::ok, "cycles and instructions can be counted", {}, {}};
  if (int code = try_counter(PERF_COUNT_HW_CPU_CYCLES); code != 0) {
    x.state = finding_state::warn;
    x.detail = fmt::format("hardware counters: {} (perf_event_paranoid {})", std::strerror(code),
                           paranoid.empty() ? "unknown" : paranoid);
    x.cost = "the profiler reports times and context switches only";
    x.remedy = code == ENOENT || code == EOPNOTSUPP
                   ? "none on this machine: its hypervisor hides the counters"
                   : "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON";
  }
  out.push_back(x);
}

void examine_disk(findings& out, const std::string& directory) {
  auto path = existing(directory);
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) {
    out.push_back({"runs directory", finding_state::fail, path + ": " + std::strerror(errno),
                   "no run can be stored there", "run.dir=PATH names another place"});
    return;
  }
  const auto* kind =
      std::find_if(std::begin(file_systems), std::end(file_systems),
                   [&](const file_system& f) { return f.magic == static_cast<long>(info.f_type); });
  bool known = kind != std::end(file_systems);
  finding x{"runs directory",
            finding_state::ok,
            fmt::format(
                "{} on {}", path,
                known ? kind->name
                      : fmt::format("file system {:#x}", static_cast<unsigned long>(info.f_type))),
            {},
            {}};
  if (known && kind->remote) {
    x.state = finding_state::fail;
    x.cost = "a lineage store does not open on a remote file system: its memory map is not "
             "coherent there";
    x.remedy = "run.dir=PATH on a local disk";
  } else if (int code = try_folder(path); code != 0) {
    x.state = finding_state::fail;
    x.detail += fmt::format(", where no folder can be made: {}", std::strerror(code));
    x.cost = "no run can be stored there";
    x.remedy = "run.dir=PATH names another place";
  }
  out.push_back(x);
  auto space = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_bsize);
  finding y{"disk space", finding_state::ok, cli::format_bytes(space) + " free", {}, {}};
  if (space < 2e9) {
    y.state = space < 2e8 ? finding_state::fail : finding_state::warn;
    y.cost = "a run stops when the disk is full; what is committed stays";
    y.remedy = "free some, or run.dir=PATH on another disk";
  }
  out.push_back(y);
}

} // namespace kernelmill::commands
