#include "gpu/sandbox/cgroup.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/files.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

constexpr const char* prefix = "kernelmill-";

// What a group of version 1 may swap. With a limit of memory and swap that equals that of memory
// the kernel asks the former first, and Linux 6.18 does not count its failures: what the group died
// of could not be told.
constexpr uint64_t most_swap = 1 << 20;

// 0 or errno. Control files take one write(2), not a stream.
int write_file(const std::string& path, const std::string& text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int failed = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
  ::close(fd);
  return failed;
}

// Lines of a name and a number.
std::map<std::string, uint64_t> counters(const std::string& path) {
  std::map<std::string, uint64_t> result;
  std::istringstream in{read_whole(path).value_or("")};
  std::string key;
  for (uint64_t value = 0; in >> key >> value;) result[key] = value;
  return result;
}

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream in{text};
  for (std::string x; in >> x;)
    if (x == word) return true;
  return false;
}

// Controller to the group of this process: "memory" to "/a/b", and "" to that of version 2.
std::map<std::string, std::string> own_groups() {
  std::map<std::string, std::string> result;
  std::ifstream in{"/proc/self/cgroup"};
  for (std::string line; std::getline(in, line);) {
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::istringstream names{line.substr(first + 1, second - first - 1)};
    auto path = line.substr(second + 1);
    if (names.str().empty()) result[""] = path;
    for (std::string name; std::getline(names, name, ',');) result[name] = path;
  }
  return result;
}

// Mount points of cgroup file systems: controllers of version 1, and "" for version 2.
std::map<std::string, std::string> mount_points() {
  std::map<std::string, std::string> result;
  std::ifstream in{"/proc/self/mounts"};
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields{line};
    std::string device, where, type, options;
    fields >> device >> where >> type >> options;
    if (type == "cgroup2") result.emplace("", where);
    if (type != "cgroup") continue;
    std::istringstream names{options};
    for (std::string name; std::getline(names, name, ',');) result.emplace(name, where);
  }
  return result;
}

// The directory of the group of this process; empty where a controller is not mounted.
std::string own_directory(std::map<std::string, std::string>& mounts,
                          std::map<std::string, std::string>& groups, const char* controller) {
  if (!mounts.contains(controller) || !groups.contains(controller)) return {};
  return mounts[controller] + (groups[controller] == "/" ? "" : groups[controller]);
}

std::optional<uint64_t> kills_of(const std::string& file) {
  auto found = counters(file);
  return found.contains("oom_kill") ? std::optional{found["oom_kill"]} : std::nullopt;
}

constexpr const char* machine_wide = "/proc/vmstat";

// The file that counts kills for want of memory; empty where none does.
std::string file_of_kills() {
  auto mounts = mount_points();
  auto groups = own_groups();
  for (const auto& x :
       {own_directory(mounts, groups, "") + "/memory.events.local",
        own_directory(mounts, groups, "memory") + "/memory.oom_control", std::string{machine_wide}})
    if (kills_of(x)) return x;
  return {};
}

// Can a group be made here? Only trying tells: the file system may be mounted read-only.
bool can_create_in(const std::string& directory) {
  auto path = directory + "/" + prefix + std::to_string(::getpid()) + "-try";
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return false;
  ::rmdir(path.c_str());
  return true;
}

std::string next_name() {
  static std::atomic<unsigned> counter = 0;
  return prefix + std::to_string(::getpid()) + "-" + std::to_string(++counter);
}

void kill_members(const std::string& directory) {
  std::ifstream in{directory + "/cgroup.procs"};
  for (int pid = 0; in >> pid;)
    if (pid > 0) ::kill(pid, SIGKILL);
}

void kill_group(const std::vector<std::string>& directories) {
  for (auto& x : directories)
    if (write_file(x + "/cgroup.kill", "1") == 0) return;
  // Version 1: frozen processes cannot fork while their list is read; the signal waits for the
  // thaw.
  for (auto& x : directories) {
    bool frozen = write_file(x + "/freezer.state", "FROZEN") == 0;
    kill_members(x);
    if (frozen) write_file(x + "/freezer.state", "THAWED");
  }
}

// A dying process keeps its group busy for a moment (4 GiB take about 0.3 s to free).
void remove_group(const std::string& directory) {
  for (int i = 0; i < 200; ++i) {
    if (::rmdir(directory.c_str()) == 0 || errno != EBUSY) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{i < 20 ? 1 : 10});
  }
}

} // namespace

// -- cgroup -----------------------------------------------------------------------------------

cgroup::cgroup(cgroup&& other) noexcept : directories_(std::exchange(other.directories_, {})) {
  // nop
}

cgroup& cgroup::operator=(cgroup&& other) noexcept {
  std::swap(directories_, other.directories_);
  return *this;
}

cgroup::~cgroup() {
  for (auto& x : directories_) {
    if (::rmdir(x.c_str()) == 0 || errno != EBUSY) continue;
    kill();
    remove_group(x);
  }
}

void cgroup::kill() noexcept {
  if (!directories_.empty()) kill_group(directories_);
}

// `oom_kill` counts kills for any reason. That the group itself was full, version 2 says by `oom`
// (version 1: by `failcnt`).
bool cgroup::out_of_memory() const {
  for (auto& x : directories_) {
    auto events = counters(x + "/memory.events");
    if (events["oom_kill"] > 0 && events["oom"] > 0) return true;
    if (counters(x + "/memory.oom_control")["oom_kill"] > 0 &&
        std::strtoull(read_whole(x + "/memory.failcnt").value_or("").c_str(), nullptr, 10) > 0)
      return true;
  }
  return false;
}

std::optional<bool> cgroup::lost_members() const {
  for (auto& x : directories_)
    for (auto* name : {"/memory.events", "/memory.oom_control"})
      if (auto kills = kills_of(x + name)) return *kills > 0;
  return std::nullopt;
}

std::optional<uint64_t> kills_for_memory() {
  static const std::string file = file_of_kills(); // this is asked for each evaluation
  return kills_of(file);
}

std::optional<uint64_t> kills_for_memory_anywhere() {
  return kills_of(machine_wide);
}

// -- cgroup_backend ---------------------------------------------------------------------------

cgroup_backend::cgroup_backend() {
  if (!find_version_2() && !find_version_1() && detail_.empty())
    detail_ = "no cgroup file system in which this user may create groups";
  remove_stale();
}

bool cgroup_backend::find_version_2() {
  std::vector<std::string> places;
  if (auto* given = std::getenv("KERNELMILL_CGROUP")) places.push_back(given);
  auto mounts = mount_points();
  auto groups = own_groups();
  if (auto own = own_directory(mounts, groups, ""); !own.empty()) {
    places.push_back(own);
    places.push_back(mounts[""]);
  }
  for (auto& x : places) {
    auto controllers = read_whole(x + "/cgroup.controllers").value_or("");
    if (!has_word(controllers, "memory") || !has_word(controllers, "pids")) continue;
    // Fails with EBUSY where processes live: then the controllers must be on already.
    write_file(x + "/cgroup.subtree_control", "+memory +pids");
    auto enabled = read_whole(x + "/cgroup.subtree_control").value_or("");
    if (!has_word(enabled, "memory") || !has_word(enabled, "pids") || !can_create_in(x)) {
      detail_ = "cgroup 2 at " + x + " cannot be divided by this user";
      continue;
    }
    version_ = 2;
    memory_ = processes_ = x;
    detail_ = "cgroup 2 at " + x;
    return true;
  }
  return false;
}

bool cgroup_backend::find_version_1() {
  auto mounts = mount_points();
  auto groups = own_groups();
  auto find = [&](const char* controller) -> std::string {
    auto place = own_directory(mounts, groups, controller);
    if (place.empty()) return {};
    // Inside a container the path may be the host's, which is not mounted here.
    if (!fs::exists(place)) place = mounts[controller];
    return can_create_in(place) ? place : std::string{};
  };
  memory_ = find("memory");
  processes_ = find("pids");
  freezer_ = find("freezer");
  if (memory_.empty() && processes_.empty() && freezer_.empty()) return false;
  version_ = 1;
  detail_ = "cgroup 1:";
  if (!memory_.empty()) detail_ += " memory";
  if (!processes_.empty()) detail_ += " pids";
  if (!freezer_.empty()) detail_ += " freezer";
  return true;
}

void cgroup_backend::remove_stale() const {
  std::error_code ignored;
  for (auto& parent : std::set<std::string>{memory_, processes_, freezer_}) {
    if (parent.empty()) continue;
    for (auto& entry : fs::directory_iterator{parent, ignored}) {
      int pid = 0;
      auto name = entry.path().filename().string();
      if (std::sscanf(name.c_str(), "kernelmill-%d-", &pid) != 1 || pid <= 0) continue;
      if (::kill(pid, 0) == 0 || errno != ESRCH) continue;
      kill_group({entry.path()});
      remove_group(entry.path());
    }
  }
}

expected<cgroup> cgroup_backend::create(uint64_t memory_bytes, uint64_t process_count) {
  cgroup result;
  if (version_ == 0) return result;
  auto name = next_name();
  for (auto& parent : std::set<std::string>{memory_, processes_, freezer_}) {
    if (parent.empty()) continue;
    auto directory = parent + "/" + name;
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
      return infrastructure_error("cgroup_failed",
                                  "failed to create " + directory + ": " + std::strerror(errno));
    result.directories_.push_back(directory);
  }
  auto set = [&](const std::string& parent, const char* key, uint64_t value) {
    return write_file(parent + "/" + name + "/" + key, std::to_string(value));
  };
  int failed = 0;
  if (memory_bytes > 0 && limits_memory()) {
    failed = set(memory_, version_ == 2 ? "memory.max" : "memory.limit_in_bytes", memory_bytes);
    // These are absent where swap is not counted; without swap nothing is lost.
    if (version_ == 2) {
      set(memory_, "memory.swap.max", 0);
      set(memory_, "memory.oom.group", 1);
    } else {
      set(memory_, "memory.memsw.limit_in_bytes", memory_bytes + most_swap);
    }
  }
  if (failed == 0 && process_count > 0 && limits_processes())
    failed = set(processes_, "pids.max", process_count);
  if (failed != 0)
    return infrastructure_error("cgroup_failed",
                                "failed to limit group " + name + ": " + std::strerror(failed));
  return result;
}

} // namespace kernelmill
