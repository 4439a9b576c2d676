#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "gpu/process/enter.hpp"
#include "gpu/process/spawner_parts.hpp"

namespace kernelmill {

namespace {

// A uid map may be too small for our own numbers (containers map 65536): nobody it is, then.
constexpr unsigned nobody = 65534;

int become_user(unsigned id) {
  if (::setgroups(0, nullptr) != 0) return errno;
  if (::setresgid(id, id, id) != 0 && ::setresgid(nobody, nobody, nobody) != 0) return errno;
  if (::setresuid(id, id, id) != 0 && ::setresuid(nobody, nobody, nobody) != 0) return errno;
  return 0;
}

bool keep_only(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned from = 3;
  for (auto x : keep) {
    auto number = static_cast<unsigned>(x);
    if (number > from && ::close_range(from, number - 1, 0) != 0) return false;
    from = std::max(from, number + 1);
  }
  return ::close_range(from, ~0u, 0) == 0;
}

int redirect_stderr(int fd) {
  if (fd < 0) fd = ::open("/dev/null", O_WRONLY);
  if (fd < 0 || ::dup2(fd, 2) < 0) return errno;
  return 0;
}

[[noreturn]] void fail(int status_fd, const char* what, int cause) {
  auto text = std::string{what} + ": " + std::strerror(cause);
  [[maybe_unused]] auto n = ::write(status_fd, text.data(), text.size());
  ::_exit(127);
}

} // namespace

int enter_main(int argc, char** argv) {
  constexpr int fixed = 13; // argv[0], "enter", ten numbers and at least argv[0] of the target
  if (argc < fixed) return 64;
  int at = 2;
  auto number = [&] { return std::strtoull(argv[at++], nullptr, 10); };
  int status_fd = static_cast<int>(number());
  int stderr_fd = std::atoi(argv[at++]);
  long uid = std::atol(argv[at++]);
  resource_limits limits;
  for (auto* x : {&limits.address_space, &limits.file_size, &limits.processes, &limits.cpu_seconds,
                  &limits.open_files, &limits.nice})
    *x = number();
  auto kept = number();
  auto variables = number();
  if (kept + variables >= static_cast<unsigned>(argc - at)) return 64;
  std::vector<int> keep{status_fd};
  while (kept-- > 0) keep.push_back(static_cast<int>(number()));
  std::vector<char*> environment{argv + at, argv + at + variables};
  environment.push_back(nullptr);
  at += static_cast<int>(variables);

  ::fcntl(status_fd, F_SETFD, FD_CLOEXEC);
  if (::write(status_fd, "R", 1) != 1) return 127;
  // Before it is somebody who cannot write to its own entries in /proc.
  if (int failed = stand_behind(limits.nice))
    fail(status_fd, "failed to stand behind others", failed);
  if (uid >= 0)
    if (int failed = become_user(static_cast<unsigned>(uid)))
      fail(status_fd, "failed to leave root", failed);
  if (int failed = redirect_stderr(stderr_fd)) fail(status_fd, "failed to set stderr", failed);
  if (!keep_only(std::move(keep))) fail(status_fd, "failed to close descriptors", errno);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (int failed = apply_limits(limits)) fail(status_fd, "failed to set limits", failed);
  ::execve(argv[at], argv + at, environment.data());
  int cause = errno;
  fail(status_fd, (std::string{"failed to execute "} + argv[at]).c_str(), cause);
}

} // namespace kernelmill
