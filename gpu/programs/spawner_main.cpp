// kernelmill-spawner: forks and execs for a client that is too big to fork.
//
// One thread, one client. It keeps every child in a session of its own, tells the client through
// a pipe how the child ended, kills orphans (it is their subreaper), and when the socket to its
// client closes it kills everything that is left and ends.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/process/pidfd.hpp"
#include "gpu/process/spawner_parts.hpp"

namespace kernelmill {
namespace {

using namespace spawn_protocol;

class server {
public:
  int run();

private:
  enum class news { none, request, closed };

  news receive(spawn_request& request, bool& valid);
  bool parse(size_t size, spawn_request& request);
  void start(const spawn_request& request);
  void refuse(step failed, int cause);
  void send(const reply& words, const int* descriptors, size_t count);
  void reap();
  void kill_orphans();
  void kill_everything();

  std::map<int, int> children_; // pid to the pipe that waits for its status
  std::vector<char> packet_ = std::vector<char>(max_packet + 1);
};

void close_all(const std::vector<int>& fds) {
  for (auto x : fds) ::close(x);
}

std::vector<int> received_descriptors(msghdr& packet) {
  std::vector<int> result;
  for (auto* x = CMSG_FIRSTHDR(&packet); x; x = CMSG_NXTHDR(&packet, x)) {
    if (x->cmsg_level != SOL_SOCKET || x->cmsg_type != SCM_RIGHTS) continue;
    result.resize((x->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(result.data(), CMSG_DATA(x), result.size() * sizeof(int));
  }
  return result;
}

// -- requests ---------------------------------------------------------------------------------

server::news server::receive(spawn_request& request, bool& valid) {
  iovec part{packet_.data(), packet_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  packet.msg_control = control;
  packet.msg_controllen = sizeof control;
  auto n = ::recvmsg(socket_fd, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? news::none : news::closed;
  if (n == 0) return news::closed;
  request.received = received_descriptors(packet);
  valid =
      (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && parse(static_cast<size_t>(n), request);
  return news::request;
}

bool server::parse(size_t size, spawn_request& request) {
  reader in{packet_.data(), size};
  auto texts = [&](auto& list) {
    for (auto n = in.count(); n > 0 && in.ok(); --n) list.push_back(const_cast<char*>(in.text()));
  };
  auto numbers = [&](std::vector<int>& list, uint64_t most) {
    for (auto n = in.count(); n > 0 && in.ok(); --n) {
      auto x = in.number();
      if (x > most) return false;
      list.push_back(static_cast<int>(x));
    }
    return true;
  };
  if (in.number() != magic) return false;
  texts(request.argv);
  texts(request.environment);
  request.directory = in.text();
  if (!numbers(request.targets, max_descriptor_number)) return false;
  if (!numbers(request.cpus, 1 << 20)) return false;
  auto& limits = request.limits;
  for (auto* x : {&limits.address_space, &limits.file_size, &limits.processes, &limits.cpu_seconds,
                  &limits.open_files, &limits.nice})
    *x = in.number();
  texts(request.cgroups);
  if (!in.ok() || !in.at_end() || request.argv.empty()) return false;
  if (request.targets.size() != request.received.size()) return false;
  request.argv.push_back(nullptr);
  request.environment.push_back(nullptr);
  return true;
}

void server::send(const reply& words, const int* descriptors, size_t count) {
  iovec part{const_cast<reply*>(&words), sizeof words};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 2)] = {};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  if (count > 0) {
    packet.msg_control = control;
    packet.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    auto* header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
  }
  while (::sendmsg(socket_fd, &packet, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    // nop
  }
}

void server::refuse(step failed, int cause) {
  reply words;
  words.failed = failed;
  words.cause = cause;
  send(words, nullptr, 0);
}

void server::start(const spawn_request& request) {
  int status[2];
  int report[2];
  if (::pipe2(status, O_CLOEXEC) != 0) return refuse(step::fork, errno);
  if (::pipe2(report, O_CLOEXEC) != 0) {
    int cause = errno;
    close_all({status[0], status[1]});
    return refuse(step::fork, cause);
  }
  int self = ::getpid();
  int pid = ::fork();
  if (pid == 0) become(request, report[1], self);
  int fork_cause = errno;
  ::close(report[1]);
  child_failure failure;
  bool failed = pid < 0;
  if (failed) {
    failure = {step::fork, fork_cause};
  } else {
    ssize_t n = 0;
    do n = ::read(report[0], &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    failed = n == sizeof failure;
  }
  ::close(report[0]);
  // A child that is not in children_ is reaped without a word.
  int pidfd = failed ? -1 : open_pidfd(pid);
  if (!failed && pidfd < 0) {
    failure = {step::fork, errno};
    failed = true;
    ::kill(pid, SIGKILL);
  }
  if (failed) {
    refuse(failure.failed, failure.cause);
    ::close(status[1]);
  } else {
    children_[pid] = status[1];
    reply words;
    words.pid = pid;
    int handles[2] = {pidfd, status[0]};
    send(words, handles, 2);
    ::close(pidfd);
  }
  ::close(status[0]);
}

// -- endings ----------------------------------------------------------------------------------

void server::reap() {
  for (;;) {
    siginfo_t info{};
    // Look before burying: until then the number cannot belong to another group.
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    auto known = children_.find(info.si_pid);
    if (known != children_.end()) ::kill(-info.si_pid, SIGKILL);
    int status = 0;
    if (::waitpid(info.si_pid, &status, 0) < 0) break;
    if (known == children_.end()) continue;
    [[maybe_unused]] auto n = ::write(known->second, &status, sizeof status);
    ::close(known->second);
    children_.erase(known);
  }
  kill_orphans();
}

// Whoever has us as a parent without having been started by us has lost its own.
void server::kill_orphans() {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/children", ::getpid());
  auto* list = std::fopen(path, "re");
  if (!list) return; // a kernel without CONFIG_PROC_CHILDREN: their groups were killed, at least
  for (int pid = 0; std::fscanf(list, "%d", &pid) == 1;)
    if (!children_.contains(pid)) ::kill(pid, SIGKILL);
  std::fclose(list);
}

void server::kill_everything() {
  // Each death may bring new orphans; two seconds are for what the kernel has to tear down.
  for (int i = 0; i < 2000; ++i) {
    for (auto& [pid, pipe] : children_) {
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
    }
    reap();
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return; // ECHILD: none left
    ::usleep(1000);
  }
}

int server::run() {
  ::close_range(socket_fd + 1, ~0u, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::fcntl(socket_fd, F_SETFD, FD_CLOEXEC);
  // Clients drop the pipe of a child that they no longer wait for.
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t watched;
  ::sigemptyset(&watched);
  for (int x : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&watched, x);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  int signals = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return 1;
  send(reply{}, nullptr, 0); // hello
  for (bool go_on = true; go_on;) {
    pollfd fds[2] = {{socket_fd, POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
    signalfd_siginfo info;
    while (::read(signals, &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) go_on = false;
    reap();
    if (fds[0].revents == 0) continue;
    spawn_request request;
    bool valid = false;
    auto what = receive(request, valid);
    if (what == news::closed) go_on = false;
    if (what != news::request) continue;
    if (valid)
      start(request);
    else
      refuse(step::request, EBADMSG);
    close_all(request.received);
  }
  kill_everything();
  return 0;
}

} // namespace
} // namespace kernelmill

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "enter") == 0) return kernelmill::enter_main(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "probe") == 0) return kernelmill::probe_main(argc, argv);
  if (argc > 1 || ::fcntl(kernelmill::spawn_protocol::socket_fd, F_GETFD) < 0) {
    std::fputs("kernelmill-spawner is started by kernelmill; it has no use of its own\n", stderr);
    return 64;
  }
  return kernelmill::server{}.run();
}
