// A forked copy of the warm Python process walls itself in: namespaces of its own, a fresh tmpfs, a
// user of its own where there are several, and the filters of the other candidates. The process
// that calls this is single-threaded, trusted, and already inside bubblewrap.
//
// It takes two processes: the one that calls stays outside the new pid namespace and waits; the
// one that returns is number 1 in it, so that ending it ends everything that it started.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/sandbox/landlock.hpp"

namespace {

constexpr unsigned nobody = 65534;
constexpr int exit_setup_failed = 120; // as of the other candidates

thread_local char problem[256];

bool fail(const char* what) {
  std::snprintf(problem, sizeof problem, "%s: %s", what, std::strerror(errno));
  return false;
}

bool write_file(const char* path, const std::string& text) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  return ok || fail(path);
}

// Without root a user namespace gives the rights to make the others; the user stays the same.
bool leave_namespaces() {
  int flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS;
  bool root = ::geteuid() == 0;
  auto uid = std::to_string(::geteuid());
  auto gid = std::to_string(::getegid());
  if (::unshare(root ? flags : flags | CLONE_NEWUSER) != 0) return fail("unshare");
  if (root) return true;
  return write_file("/proc/self/setgroups", "deny") &&
         write_file("/proc/self/uid_map", uid + " " + uid + " 1") &&
         write_file("/proc/self/gid_map", gid + " " + gid + " 1");
}

bool mount_own_files(size_t tmpfs_bytes) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fail("mount /");
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return fail("mount /proc");
  auto options = "mode=1777,size=" + std::to_string(tmpfs_bytes);
  if (::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return fail("mount /tmp");
  return true;
}

// Where memory is short, whoever judges must not be ended for what a candidate holds, also in files
// in memory that nobody maps and that count for no process.
void be_ended_first() {
  (void)write_file("/proc/self/oom_score_adj", "1000");
}

bool become_user(unsigned id) {
  if (::geteuid() != 0) return true;
  if (::setgroups(0, nullptr) != 0) return fail("setgroups");
  if (::setresgid(id, id, id) != 0 && ::setresgid(nobody, nobody, nobody) != 0)
    return fail("setresgid");
  if (::setresuid(id, id, id) != 0 && ::setresuid(nobody, nobody, nobody) != 0)
    return fail("setresuid");
  return true;
}

// A user namespace of its own makes a process its root: all of that goes.
bool drop_capabilities() {
  for (int i = 0; i < 64; ++i) ::prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0 || fail("drop capabilities");
}

bool limit(__rlimit_resource_t what, rlim_t value) {
  rlimit x{value, value};
  return ::setrlimit(what, &x) == 0 || fail("setrlimit");
}

bool enter_filter(int fd) {
  std::vector<sock_filter> program(4096);
  ssize_t bytes = ::pread(fd, program.data(), program.size() * sizeof(sock_filter), 0);
  if (bytes <= 0) return fail("read the filter");
  sock_fprog filter{static_cast<unsigned short>(static_cast<size_t>(bytes) / sizeof(sock_filter)),
                    program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("renounce privileges");
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 || fail("enter the filter");
}

[[noreturn]] void wait_for(pid_t child) {
  for (int fd = 0; fd < 1024; ++fd) ::close(fd);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  // No exit code says so: number 1 of a namespace can end itself with any.
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ::kill(::getpid(), SIGKILL);
  ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

} // namespace

extern "C" {

struct km_isolation {
  uint32_t uid;         ///< to become, where we are root
  uint32_t processes;   ///< most processes and threads
  uint64_t tmpfs_bytes; ///< of /tmp
  uint64_t data_bytes;  ///< most private writable memory; 0: no limit
  uint64_t file_bytes;  ///< most bytes of one file
  int32_t filter;       ///< descriptor of the system-call filter's program
};

/// Why km_isolate failed.
const char* km_isolate_problem() {
  return problem;
}

/// Forks; returns 0 in the new process, behind its walls, and never in the calling one, which
/// stays as its waiter and ends as it ends: killed if that was, else by its exit code, or 128 +
/// signal. Returns -1 when a wall cannot be had.
/// The caller is itself a fork that nobody needs.
int km_isolate(const km_isolation* x) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!leave_namespaces()) return -1;
  pid_t child = ::fork();
  if (child < 0) return fail("fork") ? 0 : -1;
  if (child > 0) wait_for(child);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  bool ok = mount_own_files(x->tmpfs_bytes);
  be_ended_first();
  ok = ok && limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, x->file_bytes) &&
       (x->data_bytes == 0 || limit(RLIMIT_DATA, x->data_bytes)) && become_user(x->uid) &&
       drop_capabilities() && limit(RLIMIT_NPROC, x->processes);
  if (!ok) return -1;
  // A change of the user clears it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto domain = kernelmill::enter_candidate_landlock(true) /* compilers move files */;
  if (!domain) {
    std::snprintf(problem, sizeof problem, "%s", domain.error().message.c_str());
    return -1;
  }
  return enter_filter(x->filter) ? 0 : -1;
}

} // extern "C"
