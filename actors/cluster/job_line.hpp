#pragma once

// Jobs that wait, in a line for each run. Runs take turns, so that a run of ten thousand jobs does
// not make one of ten wait; within a run the oldest goes first, which lets groups end early.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace kernelmill {

template <class Job>
class job_line {
public:
  void push_back(uint64_t run, Job x) {
    lines_[run].push_back(std::move(x));
    ++size_;
  }

  /// For a job that has been taken before.
  void push_front(uint64_t run, Job x) {
    lines_[run].push_front(std::move(x));
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// The job whose turn it is. REQUIRES: !empty()
  Job& front() { return turn()->second.front(); }

  /// Removes front(); the next run has its turn.
  Job pop() {
    auto i = turn();
    auto result = std::move(i->second.front());
    i->second.pop_front();
    served_ = i->first;
    begun_ = true;
    if (i->second.empty()) lines_.erase(i);
    --size_;
    return result;
  }

  template <class F>
  void for_each(F f) {
    for (auto& [run, line] : lines_)
      for (auto& x : line) f(x);
  }

  void clear() {
    lines_.clear();
    size_ = 0;
  }

private:
  using lines = std::map<uint64_t, std::deque<Job>>; // none of them empty

  typename lines::iterator turn() {
    auto i = begun_ ? lines_.upper_bound(served_) : lines_.begin();
    return i == lines_.end() ? lines_.begin() : i;
  }

  lines lines_;
  std::size_t size_ = 0;
  uint64_t served_ = 0; // the run that had the latest turn
  bool begun_ = false;
};

} // namespace kernelmill
