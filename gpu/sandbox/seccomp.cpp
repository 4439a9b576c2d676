#include "gpu/sandbox/seccomp.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kernelmill {

namespace {

using filter = std::unique_ptr<void, decltype(&seccomp_release)>;

// Adds rules until one fails; names that this libseccomp or architecture lacks are skipped.
class rule_list {
public:
  explicit rule_list(scmp_filter_ctx x) : context_(x) {}

  void all(uint32_t action, std::initializer_list<const char*> names) {
    for (auto* x : names) one(action, x, {});
  }
  void one(uint32_t action, const char* name, std::initializer_list<scmp_arg_cmp> when) {
    number(action, ::seccomp_syscall_resolve_name(name), when);
  }
  void number(uint32_t action, int number, std::initializer_list<scmp_arg_cmp> when) {
    if (failed_ != 0 || number == __NR_SCMP_ERROR) return;
    int n = ::seccomp_rule_add_array(context_, action, number, static_cast<unsigned>(when.size()),
                                     when.begin());
    // A pseudo number (a call that this architecture never had) is refused with EDOM or so.
    if (n != 0 && number >= 0) failed_ = -n;
  }
  int failed() const { return failed_; }

private:
  scmp_filter_ctx context_;
  int failed_ = 0;
};

constexpr uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
constexpr uint32_t unknown = SCMP_ACT_ERRNO(ENOSYS);
constexpr uint32_t allow = SCMP_ACT_ALLOW;
constexpr uint32_t nothing = SCMP_ACT_ERRNO(0); // is done, and the caller told that it was

tl::unexpected<error> cannot(const char* what, int cause) {
  return infrastructure_error("seccomp_failed",
                              std::string{"failed to "} + what +
                                  " a seccomp filter: " + std::strerror(cause),
                              "the kernel needs CONFIG_SECCOMP_FILTER; see kernelmill doctor");
}

// TCP and UDP alone: the kernel loads a module for any other protocol that is asked for, and who
// needs loopback needs none of them.
void add_loopback_rules(rule_list& rules) {
  constexpr uint64_t kind_bits = 0xf; // of a socket's type; above them lie flags
  // One rule for each gap between the families that are let through.
  rules.one(refuse, "socket", {SCMP_A0(SCMP_CMP_LT, AF_UNIX)});
  for (uint64_t family = AF_INET + 1; family < AF_INET6; ++family)
    rules.one(refuse, "socket", {SCMP_A0(SCMP_CMP_EQ, family)});
  rules.one(refuse, "socket", {SCMP_A0(SCMP_CMP_GT, AF_INET6)});
  for (uint64_t family : {AF_INET, AF_INET6}) {
    auto is_of_it = SCMP_A0(SCMP_CMP_EQ, family);
    for (uint64_t kind = 0; kind <= kind_bits; ++kind)
      if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
        rules.one(refuse, "socket", {is_of_it, SCMP_A1(SCMP_CMP_MASKED_EQ, kind_bits, kind)});
    for (uint64_t protocol = 1; protocol < IPPROTO_UDP; ++protocol)
      if (protocol != IPPROTO_TCP)
        rules.one(refuse, "socket", {is_of_it, SCMP_A2(SCMP_CMP_EQ, protocol)});
    rules.one(refuse, "socket", {is_of_it, SCMP_A2(SCMP_CMP_GT, IPPROTO_UDP)});
  }
}

// NVIDIA's driver talks to itself over Unix sockets when it starts, and gives up without. In a
// network of its own there is nobody else to reach; the inner filter refuses them all again.
void add_socket_rules(rule_list& rules, bool with_gpu, bool with_loopback) {
  if (with_loopback)
    add_loopback_rules(rules);
  else if (with_gpu)
    rules.one(refuse, "socket", {SCMP_A0(SCMP_CMP_NE, AF_UNIX)});
  else
    rules.all(refuse, {"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4"});
  rules.all(refuse, {"socketcall"});
}

// Shared files stay in the page cache from one candidate to the next: what asks whether a page is
// there, or puts it out, would tell a candidate whether another has been before it.
void add_page_cache_rules(rule_list& rules) {
  constexpr int cachestat = 451; // which this libseccomp may not know by name
  for (const char* name : {"preadv2", "pwritev2"})
    rules.one(refuse, name, {SCMP_A5(SCMP_CMP_NE, 0)}); // RWF_NOWAIT above all
  rules.all(refuse, {"fadvise64", "readahead"});
  rules.number(refuse, cachestat, {});
}

// Locks and watches of those files reach every other sandbox: a candidate could tell one that is
// judged beside it when it is called. A lock is granted and not taken; in a sandbox nobody else is.
void add_file_news_rules(rule_list& rules) {
  rules.one(nothing, "flock", {});
  for (auto* name : {"fcntl", "fcntl64"}) {
    for (uint64_t command : {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW})
      rules.one(nothing, name, {SCMP_A1(SCMP_CMP_EQ, command)});
    for (uint64_t command : {F_SETLEASE, F_NOTIFY})
      rules.one(refuse, name, {SCMP_A1(SCMP_CMP_EQ, command)});
  }
  rules.all(refuse, {"inotify_add_watch"});
}

void add_sandbox_rules(rule_list& rules) {
  rules.all(refuse, {"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot",
                     "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
                     "mount_setattr", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct"});
  rules.all(refuse, {"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
                     "pidfd_getfd", "migrate_pages", "move_pages", "perf_event_open"});
  rules.all(refuse, {"bpf",
                     "io_uring_setup",
                     "io_uring_enter",
                     "io_uring_register",
                     "userfaultfd",
                     "keyctl",
                     "add_key",
                     "request_key",
                     "kexec_load",
                     "kexec_file_load",
                     "init_module",
                     "finit_module",
                     "delete_module",
                     "create_module",
                     "open_by_handle_at",
                     "name_to_handle_at",
                     "lookup_dcookie",
                     "fanotify_init",
                     "memfd_secret",
                     "personality",
                     "modify_ldt",
                     "vm86",
                     "iopl",
                     "ioperm"});
  rules.all(refuse, {"reboot", "syslog", "sethostname", "setdomainname", "settimeofday", "stime",
                     "clock_settime", "clock_adjtime", "adjtimex", "vhangup", "nfsservctl",
                     "uselib", "ustat", "sysfs", "_sysctl"});
  // The flags of clone3 lie in memory, out of a filter's sight; glibc then uses clone.
  rules.one(unknown, "clone3", {});
  for (uint64_t flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                        CLONE_NEWPID, CLONE_NEWNET})
    rules.one(refuse, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)});
  // Whoever ends its parent ends it; and what is stopped stays so until it is told to go on.
  rules.one(refuse, "prctl",
            {SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG), SCMP_A1(SCMP_CMP_NE, SIGKILL)});
  rules.one(refuse, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, 0xff, SIGCONT)});
  // The kernel looks at 32 bits of these numbers, so a filter has to.
  for (auto* name : {"fcntl", "fcntl64"})
    rules.one(refuse, name, {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, F_SETSIG)});
  rules.all(refuse, {"mq_notify"});
  for (uint64_t request : {TIOCSTI, TIOCLINUX})
    rules.one(refuse, "ioctl", {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, request)});
}

// The driver opens device nodes whenever a thread or a buffer is made, and names its threads by
// writing to /proc. What it may ask of its device, the node's own rights decide.
void add_gpu_rules(rule_list& rules) {
  rules.all(allow, {"ioctl", "open", "openat", "mincore", "inotify_init1", "sched_setaffinity",
                    "sched_setscheduler"});
}

void add_file_rules(rule_list& rules) {
  // O_TMPFILE is part of O_DIRECTORY's bits on a writable mode, so the mode says it all.
  constexpr uint64_t writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  rules.one(allow, "open", {SCMP_A1(SCMP_CMP_MASKED_EQ, writes, 0)});
  rules.one(allow, "openat", {SCMP_A2(SCMP_CMP_MASKED_EQ, writes, 0)});
  for (uint64_t request : {TCGETS, FIONREAD, FIONBIO, TIOCGWINSZ})
    rules.one(allow, "ioctl", {SCMP_A1(SCMP_CMP_EQ, request)});
}

// raise() and abort() come as this; others, init among them, are not ours to signal. SIGCONT takes
// back a SIGSTOP that has not arrived yet. Who was killed, or stands still, was so from outside:
// nothing in here can say that of itself.
void add_signal_rules(rule_list& rules) {
  for (int signal = 0; signal <= SIGRTMAX; ++signal) {
    bool tells = signal == SIGKILL || (signal >= SIGCONT && signal <= SIGTTOU);
    if (tells) continue;
    rules.one(allow, "tgkill",
              {SCMP_A0(SCMP_CMP_EQ, static_cast<uint64_t>(::getpid())),
               SCMP_A2(SCMP_CMP_EQ, static_cast<uint64_t>(signal))});
  }
}

// bubblewrap passes on that its child was killed as an exit code. Nobody in here says that of
// itself, in the byte that is all that is left of a number: it differs in at least one bit.
void add_exit_rules(rule_list& rules) {
  constexpr uint64_t killed = 128 + SIGKILL;
  for (auto* name : {"exit", "exit_group"})
    for (uint64_t bit = 1; bit < 0x100; bit <<= 1)
      rules.one(allow, name, {SCMP_A0(SCMP_CMP_MASKED_EQ, bit, ~killed & bit)});
}

// No timer_create: what a timer signals is out of a filter's sight, and SIGCONT lets go on who is
// stopped. No timerfd either: a thousand of them interrupt the core on which the baseline runs
// while their owner stands still. setitimer() has signals of its own, and is one a process.
void add_candidate_rules(rule_list& rules) {
  rules.all(allow, {"mmap", "mmap2", "munmap", "mremap", "mprotect", "brk", "msync", "mlock",
                    "mlock2", "munlock", "mbind", "set_mempolicy", "get_mempolicy", "membarrier",
                    "pkey_alloc", "pkey_mprotect", "pkey_free"});
  // Huge pages whatever the system is set to would make tensors of the referee faster to read than
  // those of the baseline.
  constexpr uint64_t collapse = 25; // MADV_COLLAPSE, which C libraries do not know yet
  rules.one(allow, "madvise", {SCMP_A2(SCMP_CMP_LT, collapse)});
  rules.all(allow, {"futex",
                    "futex_time64",
                    "futex_waitv",
                    "set_robust_list",
                    "get_robust_list",
                    "rseq",
                    "set_tid_address",
                    "gettid",
                    "getpid",
                    "getppid",
                    "getuid",
                    "geteuid",
                    "getgid",
                    "getegid",
                    "getgroups",
                    "getpgrp",
                    "getpgid",
                    "getsid",
                    "arch_prctl",
                    "restart_syscall",
                    "sched_yield",
                    "sched_getaffinity",
                    "sched_getparam",
                    "sched_getscheduler",
                    "sched_get_priority_max",
                    "sched_get_priority_min",
                    "getpriority",
                    "getcpu",
                    "wait4",
                    "waitid"});
  rules.all(allow, {"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
                    "rt_sigtimedwait", "rt_sigsuspend", "sigaltstack", "sigreturn", "pause",
                    "alarm", "setitimer", "getitimer"});
  rules.all(allow, {"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday",
                    "time", "times", "getrusage", "sysinfo", "uname", "getrandom", "getrlimit",
                    "ugetrlimit"});
  rules.all(allow,
            {"read",       "readv",    "pread64",    "preadv",      "write",        "writev",
             "pwrite64",   "pwritev",  "close",      "close_range", "dup",          "dup2",
             "dup3",       "fcntl",    "fcntl64",    "lseek",       "_llseek",      "fstat",
             "fstat64",    "stat",     "stat64",     "lstat",       "lstat64",      "newfstatat",
             "fstatat64",  "statx",    "access",     "faccessat",   "faccessat2",   "readlink",
             "readlinkat", "getdents", "getdents64", "getcwd",      "statfs",       "fstatfs",
             "pipe",       "pipe2",    "eventfd",    "eventfd2",    "memfd_create", "ftruncate"});
  rules.all(allow, {"poll", "ppoll", "select", "_newselect", "pselect6", "epoll_create",
                    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "sendmsg", "recvmsg",
                    "sendto", "recvfrom", "shutdown", "getsockopt"});
  for (const char* name : {"preadv2", "pwritev2"})
    rules.one(allow, name, {SCMP_A5(SCMP_CMP_EQ, 0)});
  add_signal_rules(rules);
  add_exit_rules(rules);
  rules.one(unknown, "clone3", {});
  rules.one(allow, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)});
  rules.one(allow, "prlimit64", {SCMP_A2(SCMP_CMP_EQ, 0)}); // reading, not setting
  for (uint64_t option : {PR_SET_NAME, PR_GET_NAME, PR_SET_THP_DISABLE, 0x53564d41 /* VMA */})
    rules.one(allow, "prctl", {SCMP_A0(SCMP_CMP_EQ, option)});
}

expected<descriptor> sandbox_program(bool with_gpu, bool with_loopback,
                                     const std::function<void(rule_list&)>& more) {
  filter context{::seccomp_init(allow), &seccomp_release};
  if (!context) return cannot("create", ENOMEM);
  rule_list rules{context.get()};
  add_sandbox_rules(rules);
  add_page_cache_rules(rules);
  add_file_news_rules(rules);
  add_socket_rules(rules, with_gpu, with_loopback);
  more(rules);
  if (rules.failed() != 0) return cannot("fill", rules.failed());
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2); // a binary tree
  descriptor file{::memfd_create("kernelmill-seccomp", MFD_CLOEXEC)};
  if (!file) return cannot("store", errno);
  if (int n = ::seccomp_export_bpf(context.get(), file.get()); n != 0) return cannot("export", -n);
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

} // namespace

expected<descriptor> sandbox_seccomp_program(bool with_gpu, bool with_loopback) {
  return sandbox_program(with_gpu, with_loopback, [](rule_list&) {});
}

expected<descriptor> python_seccomp_program(bool with_gpu) {
  return sandbox_program(with_gpu, false, [](rule_list& rules) {
    // These carry words of the caller's own on where the signal comes from, and the kernel believes
    // that it is its own.
    rules.all(refuse, {"rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"});
    for (uint64_t limit : {RLIMIT_CPU, RLIMIT_RTTIME}) {
      rules.one(refuse, "setrlimit", {SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, limit)});
      rules.one(refuse, "prlimit64",
                {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, limit), SCMP_A2(SCMP_CMP_NE, 0)});
    }
  });
}

expected<void> enter_candidate_seccomp(bool with_gpu) {
  filter context{::seccomp_init(refuse), &seccomp_release};
  if (!context) return cannot("create", ENOMEM);
  rule_list rules{context.get()};
  add_candidate_rules(rules);
  with_gpu ? add_gpu_rules(rules) : add_file_rules(rules);
  if (rules.failed() != 0) return cannot("fill", rules.failed());
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  if (int n = ::seccomp_load(context.get()); n != 0) return cannot("load", -n);
  return {};
}

} // namespace kernelmill
