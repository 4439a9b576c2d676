#pragma once

// A queue with one line for each run. The highest priority goes first. Runs of the same priority
// take turns, so a run of ten thousand jobs does not delay a run of ten.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "messages/envelope.hpp"

namespace kernelmill {

/// `Line` is a container of what waits for one run, in its own order. The queue keeps no empty
/// line.
template <class Line>
class round_robin_queue {
public:
  bool empty() const { return ranks_.empty(); }

  /// REQUIRES: the caller puts something in.
  Line& line_of(const envelope& x) { return ranks_[x.priority].lines[x.run]; }

  /// Calls `take_out` with the line of a run and returns its result; false if the run has no line.
  /// The turns of the runs do not change.
  template <class F>
  bool withdraw(const envelope& x, F take_out) {
    auto rank = ranks_.find(x.priority);
    if (rank == ranks_.end()) return false;
    auto i = rank->second.lines.find(x.run);
    if (i == rank->second.lines.end()) return false;
    bool result = take_out(i->second);
    if (i->second.empty()) remove(rank, i);
    return result;
  }

  /// The line whose turn it is. REQUIRES: !empty()
  Line& turn() { return turn_in(ranks_.begin()->second)->second; }

  /// Returns what `take_one` takes out of turn(), after which the next run has its turn.
  template <class F>
  auto take(F take_one) {
    auto rank = ranks_.begin();
    auto i = turn_in(rank->second);
    auto result = take_one(i->second);
    rank->second.served = i->first;
    if (i->second.empty()) remove(rank, i);
    return result;
  }

  /// As take(), but of the first line in turn that `may` allows; false: it allows none.
  template <class F, class G>
  bool take_first(F may, G take_one) {
    for (auto rank = ranks_.begin(); rank != ranks_.end(); ++rank) {
      auto& lines = rank->second.lines;
      auto first = turn_in(rank->second);
      auto i = first;
      do {
        if (may(i->second)) {
          take_one(i->second);
          rank->second.served = i->first;
          if (i->second.empty()) remove(rank, i);
          return true;
        }
        if (++i == lines.end()) i = lines.begin();
      } while (i != first);
    }
    return false;
  }

  /// Calls f(run, x) for everything that waits, in the order in which take() would give it out.
  template <class F>
  void for_each_in_turn(F f) {
    for (auto& [priority, rank] : ranks_) {
      struct rest {
        uint64_t run;
        typename Line::iterator next, end;
      };
      std::vector<rest> left;
      auto first = turn_in(rank);
      auto add = [&](auto from, auto to) {
        for (; from != to; ++from)
          left.push_back({from->first, from->second.begin(), from->second.end()});
      };
      add(first, rank.lines.end());
      add(rank.lines.begin(), first);
      while (!left.empty()) {
        for (auto& x : left) f(x.run, *x.next++);
        std::erase_if(left, [](const rest& x) { return x.next == x.end; });
      }
    }
  }

  template <class F>
  void for_each_line(F f) {
    for (auto& [priority, rank] : ranks_)
      for (auto& [run, line] : rank.lines) f(line);
  }

  void clear() { ranks_.clear(); }

private:
  using line_map = std::map<uint64_t, Line>;

  struct rank_lines {
    line_map lines;
    std::optional<uint64_t> served; ///< the run that had the latest turn
  };
  using rank_map = std::map<int32_t, rank_lines, std::greater<>>;

  static typename line_map::iterator turn_in(rank_lines& x) {
    auto i = x.served ? x.lines.upper_bound(*x.served) : x.lines.begin();
    return i == x.lines.end() ? x.lines.begin() : i;
  }

  void remove(typename rank_map::iterator at, typename line_map::iterator line) {
    at->second.lines.erase(line);
    if (at->second.lines.empty()) ranks_.erase(at);
  }

  rank_map ranks_;
};

} // namespace kernelmill
