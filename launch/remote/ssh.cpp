#include "launch/remote/ssh.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "messages/base/text.hpp"

namespace kernelmill::remote {

namespace {

constexpr size_t most_ssh_words = 16 << 10;
constexpr int end_looks = 100;
constexpr int end_look_ms = 20;
constexpr int most_reads = 16;      // at once: a host that floods stderr must not stop the rest
constexpr int patience_ms = 60'000; ///< of one write that does not go on, and of one silence

constexpr const char* options[] = {
    "-T",
    "-oBatchMode=yes", // no questions: this process has no terminal to give
    "-oConnectTimeout=15",
    "-oServerAliveInterval=5", // a silent link ends after 15 s
    "-oServerAliveCountMax=3",
    "-oForwardAgent=no",
    "-oForwardX11=no",
    "-oClearAllForwardings=yes",
    "-oPermitLocalCommand=no",
};

/// Words of ssh that no second try changes, and the next step.
struct refusal {
  const char* words;
  const char* category;
  const char* hint;
};
constexpr refusal refusals[] = {
    {"Host key verification failed", "remote_denied",
     "run `ssh HOST true` once in a terminal and check its key"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "remote_denied",
     "find out why its key changed before you connect"},
    {"Permission denied", "remote_denied",
     "`ssh HOST true` must work without a question: load the key into your agent"},
    {"Too many authentication failures", "remote_denied", "name the key in ~/.ssh/config"},
    {"Could not resolve hostname", "remote_denied",
     "check the name, or write an alias into ~/.ssh/config"},
    {"No space left on device", "disk_full",
     "free space on that host, or set XDG_CACHE_HOME there; `kernelmill remote ls HOST` shows "
     "sessions to close"},
    {"Disk quota exceeded", "disk_full",
     "free space on that host; `kernelmill remote ls HOST` shows sessions to close"},
};

std::string last_line(const std::string& words) {
  auto text = trimmed(std::string_view{words});
  auto begin = text.rfind('\n');
  std::string result{begin == text.npos ? text : text.substr(begin + 1)};
  for (auto& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return result.substr(0, 400);
}

std::string with_host(std::string hint, const std::string& host) {
  for (size_t at; (at = hint.find("HOST")) != std::string::npos;) hint.replace(at, 4, host);
  return hint;
}

} // namespace

tl::unexpected<error> cancelled() {
  return infrastructure_error("cancelled", "the session was left by a signal", {});
}

expected<void> check_host(const std::string& host) {
  auto wrong = [&](const std::string& why, const std::string& hint) {
    return configuration_error("usage", "failed to use --on " + host.substr(0, 200) + ": " + why,
                               hint);
  };
  bool plain = !host.empty() && host.size() <= 255 && host[0] != '-' &&
               std::all_of(host.begin(), host.end(), [](unsigned char c) {
                 return std::isalnum(c) || std::strchr("._-@:/[]%+", c) != nullptr;
               });
  if (!plain)
    return wrong("it is no host", "write HOST, USER@HOST, an alias of ~/.ssh/config, or "
                                  "ssh://USER@HOST:PORT");
  auto colon = host.rfind(':');
  if (!host.starts_with("ssh://") && colon != std::string::npos && host.find(':') == colon)
    return wrong("ssh takes no port there",
                 "write ssh://" + host + "; the head of a cluster is asked with --head");
  return {};
}

std::vector<std::string> ssh_words(const std::string& client, const std::string& host,
                                   const std::string& script) {
  std::vector<std::string> result;
  for (auto& word : split(client, ' '))
    if (!word.empty()) result.push_back(std::move(word));
  if (result.empty()) result.emplace_back("ssh");
  result.insert(result.end(), std::begin(options), std::end(options));
  result.push_back(host);
  // The user's login shell reads this, so the script has no quote of its own.
  result.push_back("exec sh -c '" + script + "'");
  return result;
}

error ssh_failure(const std::string& host, int code, const std::string& words) {
  auto line = last_line(words);
  for (const auto& x : refusals)
    if (words.find(x.words) != std::string::npos)
      return {std::string_view{x.category} == "disk_full" ? fault_class::infrastructure
                                                          : fault_class::configuration,
              x.category, "failed to reach " + host + ": " + (line.empty() ? x.words : line),
              with_host(x.hint, host)};
  return {fault_class::infrastructure, "remote_unreachable",
          "failed to reach " + host + ": " +
              (line.empty() ? "the connection ended (ssh: exit code " + std::to_string(code) + ")"
                            : line),
          with_host("`ssh HOST true` tells more", host)};
}

expected<ssh_process> ssh_process::start(const std::string& host, const std::string& script,
                                         int wake) {
  ssh_process result;
  result.host_ = host;
  result.wake_ = wake;
  auto in = make_pipe(), out = make_pipe(), err = make_pipe();
  if (!in.read || !out.read || !err.read)
    return infrastructure_error("remote_unreachable", "failed to start ssh: no pipe is left",
                                "close files, or raise `ulimit -n`");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.read.get(), 0);
  posix_spawn_file_actions_adddup2(&files, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&files, err.write.get(), 2);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &usual);
  posix_spawnattr_setpgroup(&how, 0); // Ctrl-C is for this process, which passes it on
  posix_spawnattr_setflags(&how,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const char* client = std::getenv("KERNELMILL_SSH");
  auto words = ssh_words(client ? client : "", host, script);
  std::vector<char*> pointers;
  for (auto& x : words) pointers.push_back(x.data());
  pointers.push_back(nullptr);
  int failed = ::posix_spawnp(&result.pid_, pointers[0], &files, &how, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (failed != 0) {
    result.pid_ = -1;
    return configuration_error("ssh_missing",
                               "failed to start " + words[0] + ": " + std::strerror(failed),
                               "install openssh-client, or name the client in KERNELMILL_SSH");
  }
  result.in_ = std::move(in.write);
  result.out_ = std::move(out.read);
  result.err_ = std::move(err.read);
  for (int fd : {result.in_.get(), result.out_.get(), result.err_.get()})
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return result;
}

ssh_process::ssh_process(ssh_process&& x) noexcept {
  *this = std::move(x);
}

ssh_process& ssh_process::operator=(ssh_process&& x) noexcept {
  std::swap(host_, x.host_);
  std::swap(pid_, x.pid_);
  std::swap(code_, x.code_);
  std::swap(wake_, x.wake_);
  std::swap(in_, x.in_);
  std::swap(out_, x.out_);
  std::swap(err_, x.err_);
  std::swap(words_, x.words_);
  return *this;
}

ssh_process::~ssh_process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ssh_process::take_words() {
  char bytes[4096];
  for (int i = 0; i < most_reads && err_; ++i) {
    auto n = read_retrying(err_.get(), bytes, sizeof bytes);
    if (n < 0) return;
    if (n == 0) return err_.reset();
    words_.append(bytes, static_cast<size_t>(n));
    if (words_.size() > most_ssh_words) words_.erase(0, words_.size() - most_ssh_words);
  }
}

expected<void> ssh_process::send(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd waits[] = {{in_.get(), POLLOUT, 0}, {wake_, POLLIN, 0}, {err_.get(), POLLIN, 0}};
    int ready = ::poll(waits, 3, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return tl::unexpected<error>{failure()};
    if (waits[1].revents != 0) return cancelled();
    take_words();
    if (waits[0].revents == 0) continue;
    auto n = write_retrying(in_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EAGAIN) continue;
    if (n < 0) return tl::unexpected<error>{failure()};
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

expected<bool> ssh_process::receive(std::string& into, int wait_ms) {
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{wait_ms};
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    until - std::chrono::steady_clock::now())
                    .count();
    pollfd waits[] = {{out_.get(), POLLIN, 0}, {wake_, POLLIN, 0}, {err_.get(), POLLIN, 0}};
    int ready = left > 0 ? ::poll(waits, 3, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      return infrastructure_error("remote_unreachable",
                                  "failed to reach " + host_ + ": it was silent for " +
                                      std::to_string(wait_ms / 1000) + " s",
                                  "look at that host");
    if (waits[1].revents != 0) return cancelled();
    take_words();
    if (waits[0].revents == 0) continue;
    std::string part(most_piece, '\0');
    auto n = read_retrying(out_.get(), part.data(), part.size());
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) return false;
    into.append(part, 0, static_cast<size_t>(n));
    return true;
  }
}

int ssh_process::wait() {
  in_.reset();
  if (pid_ > 0) {
    // What is left of its words; it ends by itself, or is ended.
    int status = 0;
    bool ended = false;
    for (int i = 0; i < end_looks && !ended; ++i) {
      pollfd one{err_.get(), POLLIN, 0};
      ::poll(&one, 1, end_look_ms);
      take_words();
      ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
    }
    take_words();
    if (!ended) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code_;
}

error ssh_process::failure() {
  int code = wait();
  return ssh_failure(host_, code, words_);
}

} // namespace kernelmill::remote
