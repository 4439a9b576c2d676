// Tries to get out, up, or too much. Runs only inside a sandbox, started by sandbox_test, and
// prints "name value" a line; for system calls the value is errno, 0 when it went through.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/sandbox/landlock.hpp"
#include "gpu/sandbox/seccomp.hpp"

extern char** environ;

namespace {

void say(const char* name, long value) {
  std::printf("%s %ld\n", name, value);
  std::fflush(stdout);
}

template <class... Ts>
void call(const char* name, long number, Ts... xs) {
  errno = 0;
  say(name, ::syscall(number, xs...) >= 0 ? 0 : errno);
}

void try_open(const char* name, const char* path, int flags) {
  int fd = ::open(path, flags, 0600);
  say(name, fd >= 0 ? 0 : errno);
  if (fd >= 0) ::close(fd);
}

int census() {
  say("uid", ::getuid());
  say("groups", ::getgroups(0, nullptr));
  long variables = 0;
  for (auto** x = environ; *x; ++x) ++variables;
  say("variables", variables);
  long descriptors = 0;
  for (int fd = 0; fd < 1024; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) ++descriptors;
  say("descriptors", descriptors);
  for (auto* path : {"/etc", "/home", "/root", "/sys", "/var", "/work", "/etc/passwd",
                     "/usr/bin/env", "/usr/share/doc", "/dev/vda", "/dev/kmsg", "/dev/mem"})
    say(path, ::access(path, F_OK) == 0);
  for (auto* path : {"/", "/usr", "/dev", "/dev/shm", "/proc/sys/kernel/core_pattern", "/tmp"})
    say((std::string{"writable:"} + path).c_str(), ::access(path, W_OK) == 0);
  long processes = 0;
  if (auto* list = ::opendir("/proc")) {
    while (auto* x = ::readdir(list))
      if (std::atoi(x->d_name) > 0) ++processes;
    ::closedir(list);
  }
  say("processes", processes);
  say("chmod:/dev/null", ::chmod("/dev/null", 0666) == 0 ? 0 : errno);
  say("kill_init", ::kill(1, SIGKILL) == 0 ? 0 : errno); // the kernel ignores it inside
  say("kill_all", ::kill(-1, 0) == 0 ? 0 : errno);
  return 0;
}

// What tells or changes which pages of a file are in memory.
void try_page_cache() {
  int fd = ::open("/proc/self/exe", O_RDONLY);
  char byte = 0;
  iovec here{&byte, 1};
  call("preadv2_nowait", SYS_preadv2, fd, &here, 1, 0, 0, 8 /* RWF_NOWAIT */);
  call("fadvise64", SYS_fadvise64, fd, 0, 4096, 4 /* POSIX_FADV_DONTNEED */);
  call("readahead", SYS_readahead, fd, 0, 4096);
  call("cachestat", 451, fd, 0, 0, 0);
  ::close(fd);
}

// Whether a second descriptor of a file is kept from locking it: 0 where it is not.
void try_locks() {
  int first = ::open("/proc/self/exe", O_RDONLY);
  int second = ::open("/proc/self/exe", O_RDONLY);
  call("flock", SYS_flock, first, LOCK_EX);
  call("flock_again", SYS_flock, second, LOCK_EX | LOCK_NB);
  struct flock whole {};
  whole.l_type = F_RDLCK;
  call("ofd_lock", SYS_fcntl, first, F_OFD_SETLK, &whole);
  whole.l_type = F_WRLCK;
  call("ofd_look", SYS_fcntl, second, F_OFD_GETLK, &whole);
  say("ofd_found", whole.l_type == F_UNLCK ? 0 : EAGAIN);
  ::close(first);
  ::close(second);
}

int locks() {
  try_locks();
  call("lease", SYS_fcntl, STDIN_FILENO, F_SETLEASE, F_RDLCK);
  call("notify", SYS_fcntl, STDIN_FILENO, F_NOTIFY, DN_ACCESS);
  call("inotify_add_watch", SYS_inotify_add_watch, ::inotify_init1(0), "/usr", IN_OPEN);
  return 0;
}

int doors() {
  try_page_cache();
  call("socket", SYS_socket, AF_INET, SOCK_STREAM, 0);
  call("socket_unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0);
  call("unshare", SYS_unshare, CLONE_NEWUSER);
  call("clone", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  call("setns", SYS_setns, 0, 0);
  call("mount", SYS_mount, "none", "/tmp", "tmpfs", 0, 0);
  call("umount", SYS_umount2, "/usr", 0);
  call("pivot_root", SYS_pivot_root, "/tmp", "/tmp");
  call("chroot", SYS_chroot, "/tmp");
  call("ptrace", SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
  call("process_vm_readv", SYS_process_vm_readv, 1, 0, 0, 0, 0, 0);
  call("process_vm_writev", SYS_process_vm_writev, 1, 0, 0, 0, 0, 0);
  call("perf_event_open", SYS_perf_event_open, 0, 0, -1, -1, 0);
  call("bpf", SYS_bpf, 0, 0, 0);
  call("io_uring_setup", SYS_io_uring_setup, 1, 0);
  call("userfaultfd", SYS_userfaultfd, 0);
  call("keyctl", SYS_keyctl, 0, 0, 0, 0, 0);
  call("add_key", SYS_add_key, "user", "x", "y", 1, -1);
  call("open_by_handle_at", SYS_open_by_handle_at, 0, 0, 0);
  call("init_module", SYS_init_module, 0, 0, "");
  call("kexec_load", SYS_kexec_load, 0, 0, 0, 0);
  call("personality", SYS_personality, 0x0040000);
  call("setuid", SYS_setuid, 0);
  return 0;
}

// What leads from /proc into another process: its memory, its view of files, its descriptors.
void try_to_reach(const char* when, int pid) {
  auto task = "task/" + std::to_string(pid) + "/mem";
  auto one = [&](const char* what, int flags) {
    auto name = std::string{when} + what + (flags == O_RDONLY ? ":read" : ":write");
    auto path = "/proc/" + std::to_string(pid) + "/" + what;
    try_open(name.c_str(), path.c_str(), flags | O_NONBLOCK); // pipes would wait
  };
  for (auto* what : {"mem", task.c_str(), "environ", "maps", "root", "root/usr", "cwd", "exe",
                     "fd/0", "fd/1", "fd/2", "ns/mnt"})
    one(what, O_RDONLY);
  for (auto* what : {"mem", task.c_str(), "fd/0", "fd/1", "fd/2", "oom_score_adj", "clear_refs",
                     "coredump_filter"})
    one(what, O_RDWR);
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{const_cast<char*>("x"), 1};
  call((std::string{when} + "process_vm_readv").c_str(), SYS_process_vm_readv, pid, &here, 1,
       &there, 1, 0);
  call((std::string{when} + "process_vm_writev").c_str(), SYS_process_vm_writev, pid, &here, 1,
       &there, 1, 0);
  call((std::string{when} + "ptrace").c_str(), SYS_ptrace, PTRACE_SEIZE, pid, 0, 0);
  call((std::string{when} + "tgkill").c_str(), SYS_tgkill, pid, pid, 0);
}

int locked_in() {
  auto locked = kernelmill::enter_candidate_seccomp();
  if (!locked) {
    std::printf("%s\n", locked.error().message.c_str());
    return 1;
  }
  const char* argv[] = {"/intruder", "census", nullptr};
  call("execve", SYS_execve, argv[0], argv, argv + 2);
  call("execveat", SYS_execveat, AT_FDCWD, argv[0], argv, argv + 2, 0);
  try_page_cache();
  unsigned char resident = 0;
  int timer = 0;
  call("timerfd_create", SYS_timerfd_create, CLOCK_MONOTONIC, 0);
  call("timer_create", SYS_timer_create, CLOCK_MONOTONIC, nullptr, &timer);
  call("mincore", SYS_mincore, reinterpret_cast<long>(argv) & ~4095L, 4096, &resident);
  int pid = ::fork();
  if (pid == 0) ::_exit(0);
  say("fork", pid > 0 ? 0 : errno);
  pid = ::vfork();
  if (pid == 0) ::_exit(0);
  say("vfork", pid > 0 ? 0 : errno);
  call("socketpair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0);
  call("kill", SYS_kill, ::getpid(), 0);
  call("unlink", SYS_unlink, "/tmp/x");
  call("mkdir", SYS_mkdir, "/tmp/x", 0700);
  call("chmod", SYS_chmod, "/tmp", 0777);
  call("setrlimit", SYS_setrlimit, 0, 0);
  call("prctl_dumpable", SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  call("prctl_pdeathsig", SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0);
  call("seccomp", SYS_seccomp, 0, 0, 0);
  call("never_heard_of", 9999);
  try_open("create", "/tmp/x", O_WRONLY | O_CREAT);
  try_open("tmpfile", "/tmp", O_RDWR | O_TMPFILE);
  try_open("own_memory", "/proc/self/mem", O_RDWR);
  try_to_reach("init:", 1);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  say("setaffinity", ::sched_setaffinity(0, sizeof cpus, &cpus) == 0 ? 0 : errno);
  say("nice", ::nice(-1) != -1 ? 0 : errno);

  // What kernels need.
  long sum = 0;
  std::thread other{[&] { sum = 42; }};
  other.join();
  say("thread", sum == 42 ? 0 : 1);
  auto* bytes =
      ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("mmap", bytes != MAP_FAILED ? 0 : errno);
  call("madvise", SYS_madvise, bytes, 1 << 20, MADV_DONTNEED);
  call("collapse", SYS_madvise, bytes, 1 << 20, 25);
  call("collapse_in_disguise", SYS_madvise, bytes, 1 << 20, (1L << 32) | 25);
  try_open("read", "/proc/self/maps", O_RDONLY);
  timespec now{};
  say("clock", ::clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? 0 : errno);
  say("getaffinity", ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? 0 : errno);
  return 0;
}

void try_sockets(const char* when) {
  auto one = [&](const char* what, long number, long family, long kind, int* ends,
                 long protocol = 0) {
    call((std::string{when} + what).c_str(), number, family, kind, protocol, ends);
  };
  int ends[2] = {-1, -1};
  one("unix", SYS_socket, AF_UNIX, SOCK_STREAM, nullptr);
  one("unix_seqpacket", SYS_socket, AF_UNIX, SOCK_SEQPACKET, nullptr);
  one("socketpair", SYS_socketpair, AF_UNIX, SOCK_STREAM, ends);
  one("inet", SYS_socket, AF_INET, SOCK_STREAM, nullptr);
  one("inet_udp", SYS_socket, AF_INET, SOCK_DGRAM, nullptr);
  one("inet6", SYS_socket, AF_INET6, SOCK_STREAM, nullptr);
  one("inet_raw", SYS_socket, AF_INET, SOCK_RAW, nullptr, IPPROTO_ICMP);
  one("inet_ping", SYS_socket, AF_INET, SOCK_DGRAM, nullptr, IPPROTO_ICMP);
  one("inet_dccp", SYS_socket, AF_INET, SOCK_DCCP, nullptr);
  one("inet_sctp", SYS_socket, AF_INET, SOCK_SEQPACKET, nullptr, IPPROTO_SCTP);
  one("inet6_mptcp", SYS_socket, AF_INET6, SOCK_STREAM, nullptr, 262);
  one("netlink", SYS_socket, AF_NETLINK, SOCK_RAW, nullptr);
  one("packet", SYS_socket, AF_PACKET, SOCK_RAW, nullptr);
  // The kernel takes 32 bits of the family, a filter may look at 64.
  one("inet_in_disguise", SYS_socket, (1L << 32) | AF_INET, SOCK_STREAM, nullptr);
}

// The filters of a candidate for a GPU: sockets before and after the inner one, and what it lets
// through that the one for a CPU does not.
int gpu_locked_in() {
  try_sockets("outer:");
  auto locked = kernelmill::enter_candidate_seccomp(true);
  if (!locked) {
    std::printf("%s\n", locked.error().message.c_str());
    return 1;
  }
  try_sockets("inner:");
  const char* argv[] = {"/intruder", "census", nullptr};
  call("execve", SYS_execve, argv[0], argv, argv + 2);
  int pid = ::fork();
  if (pid == 0) ::_exit(0);
  say("fork", pid > 0 ? 0 : errno);
  call("kill", SYS_kill, ::getpid(), 0);
  call("unlink", SYS_unlink, "/tmp/x");
  call("mkdir", SYS_mkdir, "/tmp/y", 0700);
  call("chmod", SYS_chmod, "/tmp", 0777);
  call("ptrace", SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
  call("seccomp", SYS_seccomp, 0, 0, 0);
  call("never_heard_of", 9999);
  call("timerfd_create", SYS_timerfd_create, CLOCK_MONOTONIC, 0);
  int timer = 0;
  call("timer_create", SYS_timer_create, CLOCK_MONOTONIC, nullptr, &timer);
  call("tiocsti", SYS_ioctl, 0, TIOCSTI, "x");
  try_to_reach("init:", 1);
  try_open("below_usr", "/usr/x", O_WRONLY | O_CREAT);
  try_open("below_dev", "/dev/x", O_WRONLY | O_CREAT);

  // What a driver needs.
  long sum = 0;
  std::thread other{[&] { sum = 42; }};
  other.join();
  say("thread", sum == 42 ? 0 : 1);
  try_open("device", "/dev/null", O_RDWR);
  try_open("name_of_thread", "/proc/self/comm", O_RDWR);
  int ready = 0;
  int ends[2] = {-1, -1};
  say("pipe", ::pipe(ends) == 0 ? 0 : errno);
  call("ioctl", SYS_ioctl, ends[0], FIONREAD, &ready);
  return 0;
}

// A process of the same user that is plain to see, as init is where nothing hides it.
int neighbour() {
  int pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  return pid;
}

// No filter but the outer one, which lets files be opened: what holds here, Landlock does alone.
int in_domain() {
  int other = neighbour();
  try_to_reach("before:", other);
  auto entered = kernelmill::enter_candidate_landlock();
  if (!entered) {
    std::printf("%s\n", entered.error().message.c_str());
    return 1;
  }
  say("landlock", *entered);
  try_to_reach("after:", other);
  try_open("tmp", "/tmp/x", O_RDWR | O_CREAT);
  try_open("device", "/dev/null", O_RDWR);
  try_open("own_memory", "/proc/self/mem", O_RDWR);
  try_open("own_maps", "/proc/self/maps", O_RDONLY);
  try_open("usr", "/usr/lib", O_RDONLY);
  std::thread{[&] {
    auto path = "/proc/self/task/" + std::to_string(::gettid());
    try_open("name_of_thread", (path + "/comm").c_str(), O_RDWR);
    try_to_reach("thread:", other);
  }}.join();
  return 0;
}

[[noreturn]] void fork_bomb() {
  say("begun", 1);
  for (;;)
    if (::fork() == 0) ::setsid();
}

int limited_forks() {
  long forked = 0;
  for (; forked < 1000; ++forked) {
    int pid = ::fork();
    if (pid < 0) break;
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  say("forked", forked);
  return 0;
}

// Leaves a grandchild in a session of its own that holds standard output.
int orphan(bool stay) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0)
      for (;;) ::pause();
    say("orphan", 1);
    ::_exit(0);
  }
  ::wait(nullptr);
  if (stay)
    for (;;) ::pause();
  return 0;
}

int memory_bomb() {
  for (long mib = 0;; ++mib) {
    auto* bytes = static_cast<char*>(
        ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (bytes == MAP_FAILED) {
      say("mapped", mib);
      return 0;
    }
    std::memset(bytes, 1, 1 << 20);
  }
}

int fill(const char* path) {
  int fd = ::open(path, O_WRONLY | O_CREAT, 0600);
  if (fd < 0) {
    say("open", errno);
    return 0;
  }
  ::signal(SIGXFSZ, SIG_IGN);
  static char block[1 << 16];
  long written = 0;
  for (long n = 0; (n = ::write(fd, block, sizeof block)) > 0;) written += n;
  say("cause", errno);
  say("written", written);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  auto is = [&](const char* word) { return argc > 1 && std::strcmp(argv[1], word) == 0; };
  if (is("census")) return census();
  if (is("doors")) return doors();
  if (is("locks")) return locks();
  if (is("locked_in")) return locked_in();
  if (is("gpu_locked_in")) return gpu_locked_in();
  if (is("in_domain")) return in_domain();
  if (is("fork_bomb")) fork_bomb();
  if (is("limited_forks")) return limited_forks();
  if (is("orphan")) return orphan(false);
  if (is("orphan_and_stay")) return orphan(true);
  if (is("memory_bomb")) return memory_bomb();
  if (is("fill") && argc > 2) return fill(argv[2]);
  if (is("exit") && argc > 2) return std::atoi(argv[2]);
  if (is("crash")) ::raise(SIGSEGV);
  if (is("stay"))
    for (;;) ::pause();
  if (is("flood"))
    for (;;) std::puts("all work and no play makes a dull kernel");
  return 64;
}
