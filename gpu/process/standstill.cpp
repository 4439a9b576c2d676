#include "gpu/process/standstill.hpp"

#include <algorithm>
#include <csignal>

#include <time.h>

#include "gpu/process/core_use.hpp"
#include "gpu/process/pidfd.hpp"

namespace kernelmill {

namespace {

constexpr int most_generations = 20;      // of processes that start one another meanwhile
constexpr timespec look_again{0, 20'000}; // 20 us
constexpr double quick = 100e-6;          // who was told to stop stands still in this, mostly

double now() noexcept {
  timespec x{};
  ::clock_gettime(CLOCK_MONOTONIC, &x);
  return static_cast<double>(x.tv_sec) + static_cast<double>(x.tv_nsec) * 1e-9;
}

} // namespace

double processor_seconds(int pid) noexcept {
  timespec x{};
  // The kernel's name of another process's clock; clock_getcpuclockid(3) asks whether it is there.
  auto clock = static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | 2u);
  if (::clock_gettime(clock, &x) != 0) return 0;
  return static_cast<double>(x.tv_sec) + static_cast<double>(x.tv_nsec) * 1e-9;
}

bool stands_still(int pid) {
  auto states = thread_states(pid);
  return states.find_first_of("RS") == std::string::npos;
}

standstill::standstill(int pid) : pid_(pid), pidfd_(open_pidfd(pid)) {
  // nop
}

void standstill::halt() noexcept {
  if (pidfd_) signal_pidfd(pidfd_.get(), SIGSTOP);
}

void standstill::hold_waiter() noexcept {
  if (waiter_) return;
  if (int parent = parent_of(pid_); parent > 1) waiter_ = descriptor{open_pidfd(parent)};
  if (waiter_) signal_pidfd(waiter_.get(), SIGSTOP);
}

void standstill::release_waiter() noexcept {
  if (waiter_) signal_pidfd(waiter_.get(), SIGCONT);
  waiter_.reset();
}

bool standstill::gone() const noexcept {
  return !pidfd_ || wait_readable(pidfd_.get(), 0);
}

// Itself first, and again each time: who is not stopped yet may let it go on, and who was not
// stopped yet may have started more.
standing standstill::stop(double seconds) {
  if (stopped_) return standing::still;
  members_.assign(1, {pid_, 0});
  for (int i = 0; i < most_generations; ++i) {
    halt();
    if (tell_new_ones()) continue;
    stopped_ = true;
    return settle(seconds);
  }
  return standing::spawning;
}

bool standstill::tell_new_ones() {
  bool any = false;
  for (int pid : descendants_of(pid_)) {
    auto is_it = [&](const member& x) { return x.pid == pid; };
    if (std::any_of(members_.begin(), members_.end(), is_it)) continue;
    ::kill(pid, SIGSTOP);
    members_.push_back({pid, 0});
    any = true;
  }
  return any;
}

standing standstill::settle(double seconds) {
  double started = now();
  auto pause = [&] {
    if (now() - started > quick) ::nanosleep(&look_again, nullptr);
    return now() - started < seconds;
  };
  auto all_still = [&] {
    return std::all_of(members_.begin(), members_.end(),
                       [](const member& x) { return stands_still(x.pid); });
  };
  bool in_time = true;
  while (in_time && !all_still()) {
    in_time = pause();
    if (now() - started > quick) halt(); // who was not stopped yet may have let it go on
  }
  // Who has just stopped is still on its way from the processor: its clock runs on for a moment.
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto& x : members_) {
      double seconds_now = processor_seconds(x.pid);
      changed = changed || seconds_now != x.rested;
      x.rested = seconds_now;
    }
    if (changed && !pause()) return standing::unknown;
  }
  return in_time ? standing::still : standing::unknown;
}

void standstill::go_on() noexcept {
  if (!stopped_) return;
  stopped_ = false;
  for (size_t i = members_.size(); i-- > 1;) ::kill(members_[i].pid, SIGCONT);
  if (pidfd_) signal_pidfd(pidfd_.get(), SIGCONT);
}

double standstill::worked() const noexcept {
  double result = 0;
  if (!stopped_) return result;
  for (const auto& x : members_) result += std::max(0.0, processor_seconds(x.pid) - x.rested);
  return result;
}

} // namespace kernelmill
