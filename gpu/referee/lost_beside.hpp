#pragma once

// INTERNAL to gpu/referee: whose fault it is that a referee ended, hung or lost its Python while it
// judged. Once it is the machine's, and the candidate is tried again. A candidate that can bring
// this about would choose to be left out of its group's comparison, so the second time the task is
// checked first, in the same slot: what works without the candidate and not with it, twice, is the
// candidate's. Slots share this, for the second time is elsewhere where there are several; of other
// machines the request itself tells (`lostBefore`). A referee
// that somebody else has killed (`referee_killed`) counts for nothing: no candidate can do that.

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>

#include "messages/error.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

/// Thread safety: full.
class lost_beside {
public:
  /// Whether a control is to come before this candidate is tried.
  bool holds(const std::string& candidate) const {
    std::lock_guard guard{lock_};
    return std::find(known_.begin(), known_.end(), candidate) != known_.end();
  }

  /// What a failure is: with `control_worked`, which says that a control came just before and
  /// works, the candidate's; else what it was, and the candidate is remembered.
  error settled(const std::string& candidate, error failure, bool control_worked) {
    bool is_lost =
        failure.cls == fault_class::infrastructure && is_loss_of_referee(failure.category);
    if (!is_lost || candidate.empty()) return failure;
    if (control_worked)
      return {fault_class::candidate, "disturbed_referee",
              "what judges the candidate failed beside it twice, and works without it: " +
                  failure.message,
              "use no more memory, threads and time than the function needs"};
    if (holds(candidate)) return failure;
    std::lock_guard guard{lock_};
    known_.push_back(candidate);
    if (known_.size() > most_known) known_.pop_front();
    return failure;
  }

private:
  static constexpr size_t most_known = 1024;

  mutable std::mutex lock_;
  std::deque<std::string> known_; // hashes
};

} // namespace kernelmill
