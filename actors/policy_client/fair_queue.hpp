#pragma once

// Requests that wait for a place in the window. Runs take turns, so that a run of a thousand
// episodes does not starve one of eight; within a run the oldest request goes first, also when it
// comes back for another attempt.

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace kernelmill {

class fair_queue {
public:
  /// REQUIRES: ids grow with the time of the requests.
  void push(uint64_t run, uint64_t id) {
    if (waiting_[run].insert(id).second) ++size_;
  }

  void erase(uint64_t run, uint64_t id) {
    auto i = waiting_.find(run);
    if (i == waiting_.end() || i->second.erase(id) == 0) return;
    --size_;
    if (i->second.empty()) waiting_.erase(i);
  }

  std::optional<uint64_t> pop() {
    if (waiting_.empty()) return std::nullopt;
    auto i = waiting_.upper_bound(last_run_);
    if (i == waiting_.end()) i = waiting_.begin();
    last_run_ = i->first;
    auto id = *i->second.begin();
    erase(i->first, id);
    return id;
  }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

private:
  std::map<uint64_t, std::set<uint64_t>> waiting_;
  uint64_t last_run_ = 0;
  size_t size_ = 0;
};

} // namespace kernelmill
