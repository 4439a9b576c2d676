// `kernelmill-spawner probe WHAT`, run inside a sandbox by sandbox::probe(): tries what a
// candidate must not be able to do and prints what came back, "name value" a line.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/process/spawner_parts.hpp"

namespace kernelmill {

namespace {

// Twice the limit that sandbox::probe() sets.
constexpr size_t too_much = 128 << 20;

void say(const char* name, long value) {
  std::printf("%s %ld\n", name, value);
}

int count_interfaces() {
  auto* list = std::fopen("/proc/self/net/dev", "re");
  if (!list) return 0;
  int count = 0;
  for (char line[512]; std::fgets(line, sizeof line, list);)
    if (std::strchr(line, ':') && !std::strstr(line, "lo:")) ++count;
  std::fclose(list);
  return count;
}

int probe_walls() {
  say("pid", ::getpid());
  say("uid", ::getuid());
  say("interfaces", count_interfaces());
  rlimit space{};
  ::getrlimit(RLIMIT_AS, &space);
  say("address_space", static_cast<long>(space.rlim_cur));
  say("host_files", ::access("/etc/passwd", F_OK) == 0);
  say("root_writable", ::access("/", W_OK) == 0);
  say("new_namespace", ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
  say("socket", ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 0 : errno);
  say("init_visible", ::access("/proc/1/stat", F_OK) == 0);
  // Its version, from 1 on. 1 asks for that.
  long landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  say("landlock", landlock >= 0 ? landlock : -errno);
  say("trace", ::ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : errno);
  return 0;
}

int probe_memory() {
  auto* bytes = static_cast<volatile char*>(
      ::mmap(nullptr, too_much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (bytes == MAP_FAILED) return 1;
  for (size_t i = 0; i < too_much; i += 4096) bytes[i] = 1;
  say("allocated", static_cast<long>(too_much));
  return 0;
}

int probe_processes() {
  std::vector<int> pids;
  for (int i = 0; i < 32; ++i) {
    int pid = ::fork();
    if (pid < 0) break;
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
    pids.push_back(pid);
  }
  say("processes", static_cast<long>(pids.size()));
  return 0; // the children die with the namespace
}

} // namespace

int probe_main(int argc, char** argv) {
  auto is = [&](const char* word) { return argc > 2 && std::strcmp(argv[2], word) == 0; };
  if (is("walls")) return probe_walls();
  if (is("memory")) return probe_memory();
  if (is("processes")) return probe_processes();
  return 64;
}

} // namespace kernelmill
