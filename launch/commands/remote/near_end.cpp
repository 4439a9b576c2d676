#include "launch/commands/remote/near_end.hpp"

#include <filesystem>

#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/config/paths.hpp"

namespace kernelmill::commands {

namespace {

// A build tree changes without its name: there only the same files are the same program.
std::string build_of_an_installation() {
  std::error_code code;
  bool in_a_tree = std::filesystem::exists(program_directory() + "/../CMakeCache.txt", code);
  return in_a_tree ? "none: a build tree" : build_id();
}

} // namespace

near_end::near_end() {
  cli::pass_output_through();
  sigset_t mine;
  ::sigemptyset(&mine);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) // nohup
      ::sigaddset(&mine, number);
  }
  ::sigprocmask(SIG_BLOCK, &mine, &before_);
  signals_ = descriptor{::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK)};
}

near_end::~near_end() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int near_end::take_signal() {
  signalfd_siginfo info{};
  auto n = read_retrying(signals_.get(), &info, sizeof info);
  return n == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

// A reader of stdout that goes away does not end the command: what it leaves is wanted still.
void near_end::print(int stream, std::string_view bytes) {
  if (stream == 1 && reader_gone_) return;
  while (!bytes.empty()) {
    auto n = write_retrying(stream, bytes.data(), bytes.size());
    if (n <= 0) {
      reader_gone_ = reader_gone_ || stream == 1;
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

remote::near_options near_end::options(const std::string& host) {
  return {host,
          build_of_an_installation(),
          signals_.get(),
          [this] { return take_signal(); },
          [](const std::string& line) { cli::talk(cli::clean(line)); },
          [this](int stream, std::string_view bytes) { print(stream, bytes); }};
}

} // namespace kernelmill::commands
