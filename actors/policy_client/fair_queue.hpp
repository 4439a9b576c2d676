#pragma once

// Requests that wait for a place in the window. Runs take turns as in a round_robin_queue. Within a
// run the oldest request goes first, also when it comes back for another attempt.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "actors/round_robin_queue.hpp"

namespace kernelmill {

class fair_queue {
public:
  /// REQUIRES: ids grow with the time of the requests.
  void push(const envelope& where, uint64_t id) {
    if (turns_.line_of(where).insert(id).second) ++size_;
  }

  void erase(const envelope& where, uint64_t id) {
    if (turns_.withdraw(where, [&](std::set<uint64_t>& line) { return line.erase(id) > 0; }))
      --size_;
  }

  std::optional<uint64_t> pop() {
    if (turns_.empty()) return std::nullopt;
    --size_;
    return turns_.take([](std::set<uint64_t>& line) { return line.extract(line.begin()).value(); });
  }

  /// Calls f(id) in the order in which pop() would give them out.
  template <class F>
  void for_each_in_turn(F f) {
    turns_.for_each_in_turn([&](uint64_t, uint64_t id) { f(id); });
  }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

private:
  round_robin_queue<std::set<uint64_t>> turns_;
  size_t size_ = 0;
};

} // namespace kernelmill
