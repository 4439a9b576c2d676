#pragma once

// Something outside a sandbox acts on a process inside: the kernel ends it for want of memory, an
// operator stops it.

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include <unistd.h>

#include "gpu/process/core_use.hpp"

namespace kernelmill {

/// Looks for processes of a name that this one started, directly or not, and that have worked for a
/// while, and does something to each of the first `times` of them.
class outsider {
public:
  using deed = std::function<bool(int pid)>; // false: that was not the one

  outsider(std::string name, int times, double seconds, deed what)
      : name_(std::move(name)), left_(times), seconds_(seconds), what_(std::move(what)),
        thread_([this] { look(); }) {
    // nop
  }
  ~outsider() { stop(); }

  /// To how many it was done. Ends the looking: what a deed does is seen before the deed is over.
  int done() {
    stop();
    return done_;
  }

  static deed kills() {
    return [](int pid) { return ::kill(pid, SIGKILL) == 0; };
  }

  static deed stops_for(std::chrono::milliseconds time) {
    return [time](int pid) {
      if (::kill(pid, SIGSTOP) != 0) return false;
      std::this_thread::sleep_for(time); // this is what it is about: no test may wait for its end
      return ::kill(pid, SIGCONT) == 0;
    };
  }

private:
  bool is_it(int pid) const {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/comm"};
    std::string name;
    std::getline(file, name);
    auto times = processor_times_of(pid);
    return name == name_.substr(0, 15) && times.user + times.system >= seconds_;
  }

  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void look() {
    while (!over_ && left_ > 0) {
      for (int pid : descendants_of(::getpid())) {
        // A killed process keeps its name until its parent has waited for it.
        if (left_ == 0 || known_.contains(pid) || !is_it(pid) || !what_(pid)) continue;
        known_.insert(pid);
        --left_;
        ++done_;
      }
      std::this_thread::yield();
    }
  }

  std::string name_;
  int left_;
  std::set<int> known_; // to whom it was done
  double seconds_;
  deed what_;
  std::atomic<bool> over_ = false;
  int done_ = 0;
  std::thread thread_; // last: it reads the others
};

} // namespace kernelmill
