#include "launch/commands/interrupt.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace kernelmill::commands {

namespace {

std::atomic<int> first_signal{0};
std::atomic<int> wake_descriptor{-1};

// Ready before a signal comes: a handler may do no more than write it.
char last_words[1024];
std::atomic<size_t> last_words_size{0};

void on_signal(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) {
    if (::write(2, last_words, last_words_size.load()) < 0) {
      // nop: stderr is closed
    }
    ::_exit(128 + number);
  }
  int saved = errno;
  char byte = 1;
  if (::write(wake_descriptor.load(), &byte, 1) < 0) {
    // nop: the pipe is empty when this runs, so a byte always fits
  }
  errno = saved;
}

void install(void (*handler)(int), bool usr1) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // The end of a terminal or of a login asks as SIGTERM does; under nohup it is ignored.
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
  if (usr1) ::sigaction(SIGUSR1, &action, nullptr);
}

} // namespace

interrupt::interrupt(bool usr1) {
  first_signal = 0;
  if (::pipe2(wake_, O_CLOEXEC) != 0) return; // then signals end the process as they always did
  wake_descriptor = wake_[1];
  watcher_ = std::jthread{[this] {
    char byte = 0;
    while (::read(wake_[0], &byte, 1) < 0 && errno == EINTR) {
      // nop
    }
    source_.request_stop();
  }};
  install(on_signal, usr1);
}

interrupt::~interrupt() {
  install(SIG_DFL, false);
  last_words_size = 0;
  if (wake_[1] >= 0) ::close(wake_[1]); // the watcher reads the end of the pipe
  if (watcher_.joinable()) watcher_.join();
  if (wake_[0] >= 0) ::close(wake_[0]);
  wake_descriptor = -1;
}

void interrupt::wait() {
  if (watcher_.joinable()) watcher_.join();
}

void interrupt::say_at_second(const std::string& line) {
  last_words_size = 0;
  auto text = "\n" + line.substr(0, sizeof last_words - 2) + "\n"; // a line may be open
  std::copy(text.begin(), text.end(), last_words);
  last_words_size = text.size();
}

int interrupt::signal() noexcept {
  return first_signal.load();
}

} // namespace kernelmill::commands
