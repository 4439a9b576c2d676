#include "tests/integration/cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kernelmill::test {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

struct started {
  int pid = -1;
  int in = -1, out = -1, err = -1;
};

// A cache of its own for each test program: nothing of the user's is touched, and two programs at
// once share nothing. Only what `doctor` has built with each compiler, a minute of work, is
// remembered by all, until another kernelmill is built.
std::string cache_for(const std::vector<std::string>& argv) {
  if (std::find(argv.begin(), argv.end(), "doctor") == argv.end()) return scratch() + "/cache";
  std::error_code none;
  auto built = fs::last_write_time(binary(), none).time_since_epoch().count();
  auto folder = fs::path{binary()}.parent_path().parent_path() / "tests";
  return folder / ("doctor-" + std::to_string(built));
}

started start(const std::vector<std::string>& argv, const program_options& options) {
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) || ::pipe2(out, O_CLOEXEC) || ::pipe2(err, O_CLOEXEC)) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  auto directory = options.directory.empty() ? scratch() : options.directory;
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  auto environment = options.environment;
  for (const auto& fixed : {std::string{"PATH=/usr/bin:/bin"}, std::string{"LC_ALL=C"},
                            "HOME=" + scratch(), "XDG_CACHE_HOME=" + cache_for(argv)})
    environment.push_back(fixed);
  std::vector<char*> args, vars;
  for (const auto& x : argv) args.push_back(const_cast<char*>(x.c_str()));
  for (const auto& x : environment) vars.push_back(const_cast<char*>(x.c_str()));
  args.push_back(nullptr);
  vars.push_back(nullptr);
  started result;
  if (::posix_spawn(&result.pid, argv[0].c_str(), &actions, nullptr, args.data(), vars.data()) != 0)
    result.pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  for (int fd : {in[0], out[1], err[1]}) ::close(fd);
  result.in = in[1];
  result.out = out[0];
  result.err = err[0];
  return result;
}

void drain(int out, int err, program_result& result) {
  pollfd ends[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  int open = 2;
  while (open > 0 && ::poll(ends, 2, -1) > 0)
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char part[65536];
      auto n = ::read(ends[i].fd, part, sizeof part);
      if (n > 0) {
        texts[i]->append(part, static_cast<size_t>(n));
      } else {
        ends[i].fd = -1;
        --open;
      }
    }
}

int reap(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    // nop
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct scratch_directory {
  std::string path;
  scratch_directory() {
    auto pattern = (fs::temp_directory_path() / "kernelmill-cli-XXXXXX").string();
    path = ::mkdtemp(pattern.data()) ? pattern : std::string{};
  }
  ~scratch_directory() {
    std::error_code code;
    if (!path.empty()) fs::remove_all(path, code);
  }
};

} // namespace

nlohmann::json program_result::fault() const {
  auto document = nlohmann::json::parse(err, nullptr, false);
  return document.is_object() ? document.value("error", nlohmann::json{}) : nlohmann::json{};
}

const std::string& scratch() {
  static const scratch_directory directory;
  return directory.path;
}

std::string write_file(const std::string& name, const std::string& text) {
  auto path = fs::path{scratch()} / name;
  fs::create_directories(path.parent_path());
  std::ofstream{path, std::ios::binary} << text;
  return path.string();
}

std::string binary() {
  return variable("KERNELMILL_BIN_DIR", "build/bin") + "/kernelmill";
}

std::string source_file(const std::string& path) {
  return variable("KERNELMILL_SOURCE_DIR", ".") + "/" + path;
}

program_result run_program(const std::vector<std::string>& argv, const program_options& options) {
  ::signal(SIGPIPE, SIG_IGN); // a program may end before it has read its input
  program_result result;
  auto x = start(argv, options);
  if (x.pid < 0) return result;
  if (!options.input.empty() && ::write(x.in, options.input.data(), options.input.size()) < 0) {
    // nop
  }
  ::close(x.in);
  drain(x.out, x.err, result);
  ::close(x.out);
  ::close(x.err);
  result.code = reap(x.pid);
  return result;
}

program_result kernelmill(const std::vector<std::string>& arguments,
                          const program_options& options) {
  std::vector<std::string> argv{binary()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_program(argv, options);
}

running_program::running_program(const std::vector<std::string>& arguments,
                                 const program_options& options) {
  std::vector<std::string> argv{binary()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto x = start(argv, options);
  ::close(x.in);
  pid_ = x.pid;
  out_ = x.out;
  err_ = x.err;
}

running_program::~running_program() {
  if (pid_ > 0) (void)stop(SIGKILL);
}

std::string running_program::first_line() {
  for (char c; seen_.find('\n') == std::string::npos && ::read(out_, &c, 1) == 1;) seen_ += c;
  return seen_.substr(0, seen_.find('\n'));
}

void running_program::wait_for_error(const std::string& text) {
  for (char c; seen_error_.find(text) == std::string::npos && ::read(err_, &c, 1) == 1;)
    seen_error_ += c;
}

bool running_program::running() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

program_result running_program::stop(int signal) {
  program_result result;
  // A program that never started has no number, and -1 would be every process of this machine.
  if (pid_ <= 0) return result;
  ::kill(pid_, signal);
  drain(out_, err_, result);
  ::close(out_);
  ::close(err_);
  result.out.insert(0, seen_);
  result.err.insert(0, seen_error_);
  result.code = reap(pid_);
  pid_ = -1;
  return result;
}

} // namespace kernelmill::test
