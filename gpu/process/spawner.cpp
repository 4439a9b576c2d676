#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/process/pidfd.hpp"
#include "gpu/process/process.hpp"
#include "gpu/process/spawn_protocol.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

using namespace spawn_protocol;

namespace {

constexpr int hello_deadline_ms = 10'000;

// A spawner answers in about a millisecond; it can only be late on a machine that is stuck.
constexpr int start_deadline_ms = 30'000;

// How long a spawner may take to bury its children after its client has gone.
constexpr int farewell_ms = 5'000;
constexpr int most_beginnings = 3;

std::string cause_of(int number) {
  return std::strerror(number);
}

std::string encode(const process_spec& spec) {
  writer out;
  out.number(magic);
  out.number(spec.argv.size());
  for (auto& x : spec.argv) out.text(x);
  out.number(spec.environment.size());
  for (auto& x : spec.environment) out.text(x);
  out.text(spec.directory);
  out.number(spec.descriptors.size());
  for (auto& [ours, theirs] : spec.descriptors) out.number(static_cast<uint64_t>(theirs));
  out.number(spec.cpus.size());
  for (auto x : spec.cpus) out.number(static_cast<uint64_t>(x));
  auto& limits = spec.limits;
  for (auto x : {limits.address_space, limits.file_size, limits.processes, limits.cpu_seconds,
                 limits.open_files, limits.nice})
    out.number(x);
  out.number(spec.cgroups.size());
  for (auto& x : spec.cgroups) out.text(x);
  return out.bytes();
}

// Sends a packet with descriptors beside it; returns 0 or errno.
int send_packet(int socket, const std::string& bytes, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors)];
  if (!descriptors.empty()) {
    auto size = sizeof(int) * descriptors.size();
    packet.msg_control = control;
    packet.msg_controllen = CMSG_SPACE(size);
    auto* header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), descriptors.data(), size);
  }
  for (;;) {
    auto n = ::sendmsg(socket, &packet, MSG_NOSIGNAL);
    if (n >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

struct answer {
  reply words;
  descriptor pidfd;
  descriptor status;
};

// Nothing when the spawner is gone, late, or is not ours.
std::optional<answer> receive_answer(int socket, int deadline_ms) {
  if (!wait_readable(socket, deadline_ms)) return {};
  answer result;
  iovec part{&result.words, sizeof result.words};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 2)];
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  packet.msg_control = control;
  packet.msg_controllen = sizeof control;
  ssize_t n = 0;
  do n = ::recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (auto* header = n > 0 ? CMSG_FIRSTHDR(&packet) : nullptr;
      header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
    int fds[2];
    std::memcpy(fds, CMSG_DATA(header), sizeof fds);
    result.pidfd = descriptor{fds[0]};
    result.status = descriptor{fds[1]};
  }
  if (n != sizeof result.words || result.words.magic != magic) return {};
  return result;
}

expected<void> check(const process_spec& spec) {
  auto refuse = [](std::string why) {
    return infrastructure_error("bad_process_spec", "failed to start a process: " + why);
  };
  if (spec.argv.empty() || spec.argv[0].empty() || spec.argv[0][0] != '/')
    return refuse("argv[0] must be an absolute path");
  if (spec.descriptors.size() > max_descriptors)
    return refuse("more than " + std::to_string(max_descriptors) + " descriptors");
  for (auto& [ours, theirs] : spec.descriptors)
    if (ours < 0 || theirs < 0 || theirs > max_descriptor_number)
      return refuse("descriptor " + std::to_string(ours) + " to " + std::to_string(theirs));
  for (auto* list : {&spec.argv, &spec.environment})
    for (auto& x : *list)
      if (x.find('\0') != x.npos) return refuse("an argument holds a NUL character");
  return {};
}

const char* verb_of(step x) {
  switch (x) {
    case step::request: return "understand the request for";
    case step::fork: return "fork for";
    case step::descriptors: return "hand descriptors to";
    case step::directory: return "enter the directory of";
    case step::limits: return "limit";
    case step::affinity: return "pin";
    case step::cgroup: return "join the cgroup of";
    default: return "execute";
  }
}

} // namespace

struct spawner::state {
  std::string program;
  std::mutex mutex; // one request and its reply at a time
  descriptor socket;
  int pid = -1;

  ~state() { end(); }

  expected<void> begin();
  expected<void> begin_once(bool& was_killed);
  bool end(); // true when somebody else had killed it
  expected<answer> ask(const std::string& request, const std::vector<int>& descriptors);
};

// Again where somebody has killed it before it could say that it is there.
expected<void> spawner::state::begin() {
  for (int round = 1;; ++round) {
    bool was_killed = false;
    auto begun = begin_once(was_killed);
    if (begun || !was_killed || round == most_beginnings) return begun;
  }
}

expected<void> spawner::state::begin_once(bool& was_killed) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return infrastructure_error("spawner_failed",
                                "failed to start " + program + ": " + cause_of(errno));
  descriptor ours{pair[0]};
  descriptor theirs{pair[1]};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), socket_fd);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // A session of its own: Ctrl-C ends the client in its own way first.
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  char* argv[] = {program.data(), nullptr};
  char* environment[] = {nullptr};
  int failed = ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv, environment);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    pid = -1;
    return infrastructure_error("spawner_failed",
                                "failed to start " + program + ": " + cause_of(failed),
                                "build or install the program kernelmill-spawner there");
  }
  theirs.reset(); // or the end of the spawner would never be seen
  socket = std::move(ours);
  if (!receive_answer(socket.get(), hello_deadline_ms)) {
    was_killed = end();
    return infrastructure_error("spawner_failed",
                                "failed to start " + program + ": it does not answer",
                                "is this the kernelmill-spawner of this build?");
  }
  return {};
}

bool spawner::state::end() {
  socket.reset();
  if (pid < 0) return false;
  descriptor handle{open_pidfd(pid)};
  bool stayed = handle && !wait_readable(handle.get(), farewell_ms);
  if (stayed) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    // nop
  }
  pid = -1;
  return !stayed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

expected<answer> spawner::state::ask(const std::string& request,
                                     const std::vector<int>& descriptors) {
  std::lock_guard guard{mutex};
  // The second round is for a spawner that somebody has killed.
  for (int round = 0; round < 2; ++round) {
    if (!socket) KM_TRY(begin());
    int failed = send_packet(socket.get(), request, descriptors);
    // A descriptor that is not open is the caller's mistake, and no reason to end the spawner
    // with all its children.
    if (failed != 0 && failed != EPIPE && failed != ECONNRESET)
      return infrastructure_error("bad_process_spec",
                                  "failed to ask " + program + ": " + cause_of(failed));
    if (failed == 0)
      if (auto result = receive_answer(socket.get(), start_deadline_ms)) return std::move(*result);
    end();
  }
  return infrastructure_error("spawner_lost", "failed to ask " + program + ": it does not answer",
                              "is something killing kernelmill-spawner? Look at dmesg");
}

spawner::spawner(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

spawner::spawner(spawner&&) noexcept = default;
spawner& spawner::operator=(spawner&&) noexcept = default;
spawner::~spawner() = default;

const std::string& spawner::program() const noexcept {
  return state_->program;
}

expected<spawner> spawner::launch(const std::string& program) {
  auto result = std::make_unique<state>();
  result->program = program;
  KM_TRY(result->begin());
  return spawner{std::move(result)};
}

expected<child> spawner::start(const process_spec& spec) {
  KM_TRY(check(spec));
  auto request = encode(spec);
  if (request.size() > max_packet)
    return infrastructure_error("bad_process_spec",
                                "failed to start " + spec.argv[0] + ": arguments of " +
                                    std::to_string(request.size()) + " bytes; the limit is " +
                                    std::to_string(max_packet));
  std::vector<int> ours;
  for (auto& [mine, theirs] : spec.descriptors) ours.push_back(mine);
  auto got = state_->ask(request, ours);
  KM_TRY(got);
  if (got->words.pid < 0)
    return infrastructure_error(got->words.failed == step::exec ? "cannot_execute" : "cannot_start",
                                std::string{"failed to "} + verb_of(got->words.failed) + " " +
                                    spec.argv[0] + ": " + cause_of(got->words.cause));
  if (!got->pidfd || !got->status)
    return infrastructure_error(
        "cannot_start", "failed to start " + spec.argv[0] + ": this process has no descriptor left",
        "raise the limit of open files (ulimit -n)");
  return child{got->words.pid, got->pidfd.release(), got->status.release()};
}

} // namespace kernelmill
