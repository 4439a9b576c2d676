#pragma once

// Jobs that wait. Runs take turns as in a round_robin_queue. Within a run the oldest job goes
// first, which lets groups end early.

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "actors/round_robin_queue.hpp"

namespace kernelmill {

template <class Job>
class job_line {
public:
  void push_back(const envelope& where, Job x) {
    turns_.line_of(where).push_back(std::move(x));
    ++size_;
  }

  /// For a job that has been taken before.
  void push_front(const envelope& where, Job x) {
    turns_.line_of(where).push_front(std::move(x));
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// The job whose turn it is. REQUIRES: !empty()
  Job& front() { return turns_.turn().front(); }

  /// Removes front(); the next run has its turn.
  Job pop() {
    --size_;
    return turns_.take([](std::deque<Job>& line) {
      auto result = std::move(line.front());
      line.pop_front();
      return result;
    });
  }

  /// As pop(), but takes the next job of the first run in turn for which `may` is true; nothing if
  /// it is true for none. A job that waits for one worker delays its own run alone.
  template <class F>
  std::optional<Job> pop_if(F may) {
    std::optional<Job> result;
    turns_.take_first([&](std::deque<Job>& line) { return may(line.front()); },
                      [&](std::deque<Job>& line) {
                        result = std::move(line.front());
                        line.pop_front();
                        --size_;
                      });
    return result;
  }

  template <class F>
  void for_each(F f) {
    turns_.for_each_line([&](std::deque<Job>& line) {
      for (auto& x : line) f(x);
    });
  }

  /// Calls f(run, job) in the order in which pop() would give them out.
  template <class F>
  void for_each_in_turn(F f) {
    turns_.for_each_in_turn(f);
  }

  void clear() {
    turns_.clear();
    size_ = 0;
  }

private:
  round_robin_queue<std::deque<Job>> turns_;
  std::size_t size_ = 0;
};

} // namespace kernelmill
