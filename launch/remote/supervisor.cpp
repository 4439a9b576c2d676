#include "launch/remote/supervisor.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "gpu/process/pidfd.hpp"
#include "launch/remote/far_session.hpp"
#include "messages/base/files.hpp"
#include "storage/files.hpp"

namespace kernelmill::remote {

namespace {

constexpr int start_tries = 1000;
constexpr int start_wait_ms = 20;

tl::unexpected<error> failed_to_start(const std::string& why) {
  return infrastructure_error("remote_lost", "failed to start the command: " + why,
                              "start it again; that host may lack memory or processes");
}

/// Where one of the command's streams goes: a file, or a terminal whose bytes go to that file.
struct stream_end {
  descriptor file;
  descriptor master; ///< of the terminal
  descriptor command_side;
};

expected<stream_end> open_stream(const std::string& path, bool is_terminal,
                                 const terminal_shape& shape) {
  stream_end result;
  result.file = descriptor{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  if (!result.file) return tl::unexpected<error>{file_error(errno, "write", path)};
  if (!is_terminal) return result;
  winsize size{};
  size.ws_col = static_cast<unsigned short>(shape.columns);
  size.ws_row = static_cast<unsigned short>(shape.rows);
  int master = -1, slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, &size) != 0)
    return failed_to_start(std::string{"no terminal: "} + std::strerror(errno));
  result.master = descriptor{master};
  result.command_side = descriptor{slave};
  ::fcntl(master, F_SETFD, FD_CLOEXEC);
  ::fcntl(slave, F_SETFD, FD_CLOEXEC);
  ::fcntl(master, F_SETFL, O_NONBLOCK);
  termios how{};
  if (::tcgetattr(slave, &how) == 0) {
    ::cfmakeraw(&how); // the near end's terminal makes \r\n of \n
    ::tcsetattr(slave, TCSANOW, &how);
  }
  return result;
}

// False at the end: on Linux a terminal without a writer gives EIO.
bool drain(stream_end& x) {
  char bytes[65536];
  while (true) {
    auto n = read_retrying(x.master.get(), bytes, sizeof bytes);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    for (ssize_t done = 0; done < n;) {
      auto written = write_retrying(x.file.get(), bytes + done, static_cast<size_t>(n - done));
      if (written <= 0) break; // the disk is full: the command goes on without its words
      done += written;
    }
  }
}

/// The environment of this login, with what the session changes. Nothing of the near end's.
std::vector<std::string> environment_of(const far_session& session) {
  std::vector<std::string> result;
  for (char** at = environ; at && *at; ++at) {
    std::string entry = *at;
    if (!entry.starts_with("XDG_DATA_HOME=") && !entry.starts_with("TERM=") &&
        !entry.starts_with("COLUMNS=") && !entry.starts_with("SSH_"))
      result.push_back(std::move(entry));
  }
  // Where Kernelmill looks for imported tasks: those that were sent.
  result.push_back("XDG_DATA_HOME=" + session.work() + "/data");
  const auto& terminal = session.what().terminal;
  if (!terminal.type.empty()) result.push_back("TERM=" + terminal.type);
  if (!terminal.out && !terminal.err && terminal.columns > 0)
    result.push_back("COLUMNS=" + std::to_string(terminal.columns));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& x : texts) result.push_back(x.data());
  result.push_back(nullptr);
  return result;
}

expected<pid_t> start_command(const far_session& session, const stream_end& out,
                              const stream_end& err) {
  auto input = session.what().input.empty() ? std::string{"/dev/null"}
                                            : session.work() + "/" + session.what().input;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, (out.command_side ? out.command_side : out.file).get(),
                                   1);
  posix_spawn_file_actions_adddup2(&files, (err.command_side ? err.command_side : err.file).get(),
                                   2);
  posix_spawn_file_actions_addchdir_np(&files, session.work().c_str());
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  for (int number : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGTERM}) ::sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &usual);
  posix_spawnattr_setpgroup(&how, 0); // signals go to the command and what it started
  posix_spawnattr_setflags(&how,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::error_code code;
  auto program = std::filesystem::read_symlink("/proc/self/exe", code).string();
  auto words = session.what().words;
  words.insert(words.begin(), program);
  auto environment = environment_of(session);
  pid_t child = -1;
  int failed = ::posix_spawn(&child, program.c_str(), &files, &how, pointers(words).data(),
                             pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (failed != 0) return failed_to_start(std::strerror(failed));
  return child;
}

// Copies what the terminals say until the command has ended; it is not reaped yet.
void wait_for(pid_t child, std::vector<stream_end*> terminals) {
  descriptor process{open_pidfd(child)};
  while (true) {
    std::vector<pollfd> waits{{process.get(), POLLIN, 0}};
    for (auto* x : terminals) waits.push_back({x->master.get(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    bool ended = waits[0].revents != 0;
    std::erase_if(terminals, [&](stream_end* x) { return !drain(*x); });
    if (ended) break;
  }
}

expected<void> store_exit(const std::string& folder, pid_t child) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
    // nop
  }
  bool by_itself = info.si_code == CLD_EXITED;
  nlohmann::json x{{"code", by_itself ? info.si_status : -1},
                   {"signal", by_itself ? 0 : info.si_status}};
  // Before it is reaped: its number is its own as long as the session counts as running.
  auto stored = write_file(folder + "/exit", x.dump());
  ::waitpid(child, nullptr, 0);
  return stored;
}

} // namespace

expected<void> supervise(const std::string& folder) {
  auto lock = lock_session(folder);
  std::error_code code;
  if (!lock || std::filesystem::exists(folder + "/started", code)) return {};
  std::filesystem::path path{folder};
  auto session =
      far_session::find(path.parent_path().parent_path().string(), path.filename().string());
  KM_TRY(session);
  const auto& shape = session->what().terminal;
  auto out = open_stream(session->log("stdout"), shape.out, shape);
  KM_TRY(out);
  auto err = open_stream(session->log("stderr"), shape.err, shape);
  KM_TRY(err);
  auto child = start_command(*session, *out, *err);
  KM_TRY(child);
  KM_TRY(write_file(folder + "/started", std::to_string(*child) + "\n"));
  std::vector<stream_end*> terminals;
  for (auto* x : {&*out, &*err}) {
    x->command_side.reset();
    if (x->master) terminals.push_back(x);
  }
  wait_for(*child, std::move(terminals));
  return store_exit(folder, *child);
}

expected<void> start_supervisor(const std::string& folder) {
  std::error_code code;
  auto program = std::filesystem::read_symlink("/proc/self/exe", code).string();
  std::vector<std::string> words{program, "__remote", "supervise", folder};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  auto words_of_it = folder + "/supervisor";
  posix_spawn_file_actions_addopen(&files, 2, words_of_it.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID); // sshd ends its session, not this one
  pid_t child = -1;
  int failed =
      ::posix_spawn(&child, program.c_str(), &files, &how, pointers(words).data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (failed != 0) return failed_to_start(std::strerror(failed));
  auto begun = [&] {
    return std::filesystem::exists(folder + "/started", code) ||
           std::filesystem::exists(folder + "/exit", code);
  };
  for (int i = 0; i < start_tries && !begun(); ++i) {
    if (::waitpid(child, nullptr, WNOHANG) == child && !begun())
      return failed_to_start(read_whole(words_of_it).value_or("").substr(0, 1000));
    ::poll(nullptr, 0, start_wait_ms);
  }
  if (!begun()) return failed_to_start("it did not begin in 20 s");
  return {};
}

} // namespace kernelmill::remote
