#include "launch/cli/bus_guard.hpp"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "launch/cli/exit_code.hpp"

namespace kernelmill::cli {

namespace {

// Everything below is called in a signal's handler: system calls and memory of its own alone.

constexpr std::string_view data_file = "/data.mdb";
constexpr std::string_view deleted = " (deleted)";
int code_of_damage = exit_failed;

void say(std::string_view text) {
  while (!text.empty()) {
    auto count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

/// Lines of a file, as far as they fit.
class line_reader {
public:
  explicit line_reader(const char* path) : fd_(::open(path, O_RDONLY | O_CLOEXEC)) {
    // nop
  }
  ~line_reader() {
    if (fd_ >= 0) ::close(fd_);
  }
  line_reader(const line_reader&) = delete;
  line_reader& operator=(const line_reader&) = delete;

  bool next(std::string_view& line) {
    for (;;) {
      std::string_view seen{buffer_ + begin_, end_ - begin_};
      if (auto at = seen.find('\n'); at != seen.npos) {
        line = seen.substr(0, at);
        begin_ += at + 1;
        return true;
      }
      std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      if (end_ == sizeof buffer_) return false;
      auto count = fd_ < 0 ? -1 : ::read(fd_, buffer_ + end_, sizeof buffer_ - end_);
      if (count <= 0) return false;
      end_ += static_cast<size_t>(count);
    }
  }

private:
  int fd_;
  char buffer_[8192];
  size_t begin_ = 0, end_ = 0;
};

uintptr_t hexadecimal(std::string_view& text) {
  uintptr_t result = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    auto c = text.front();
    auto digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    result = result << 4 | static_cast<uintptr_t>(digit);
  }
  return result;
}

/// Says what the file is that is mapped at an address, if it is a store's.
bool tell_of_store(const void* address) {
  line_reader maps{"/proc/self/maps"};
  std::string_view line;
  while (maps.next(line)) {
    auto rest = line;
    auto begin = hexadecimal(rest);
    if (rest.empty() || rest.front() != '-') continue;
    rest.remove_prefix(1);
    auto end = hexadecimal(rest);
    auto at = reinterpret_cast<uintptr_t>(address);
    if (at < begin || at >= end) continue;
    auto path = line.substr(std::min(line.find('/'), line.size()));
    if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
    if (!path.ends_with(data_file)) return false;
    path.remove_suffix(data_file.size());
    say("kernelmill: error: failed to read the store ");
    say(path);
    say(": its data.mdb was cut off while it was open\n"
        "next: `kernelmill fsck` says what is left of it; restore it from a copy\n");
    return true;
  }
  return false;
}

void on_bus_error(int number, siginfo_t* info, void*) {
  // Not for a signal that kill(2) sent.
  if (info->si_code > 0 && tell_of_store(info->si_addr)) ::_exit(code_of_damage);
  ::signal(number, SIG_DFL); // the access is made again, and ends the process
  if (info->si_code <= 0) ::raise(number);
}

} // namespace

void guard_maps() {
  code_of_damage = exit_code({fault_class::infrastructure, "store_damaged", {}, {}});
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace kernelmill::cli
