#include "launch/analysis/watch/time_left.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kernelmill::watch {

namespace {

constexpr double least_turns = 2;
constexpr double least_share = 0.05; // of the turns to come
constexpr double behind = 0.5;       // of a turn, that the last episode comes behind the others
constexpr double over_below = 0.5;   // of an episode

/// Episodes by the turns that they have done. Of those that live only the mean is known.
class population {
public:
  explicit population(const run_pace& x)
      : by_turns_(std::max<size_t>(1, x.max_turns)), live_(static_cast<double>(x.live)),
        to_begin_(static_cast<double>(x.episodes) - static_cast<double>(x.ended) - live_),
        ends_(early_end_share(x)) {
    if (live_ > 0) {
      auto last = static_cast<double>(by_turns_.size() - 1);
      auto done = std::min(static_cast<double>(x.turns - x.ended_turns) / live_, last);
      auto below = static_cast<size_t>(done);
      auto rest = done - static_cast<double>(below);
      by_turns_[below] += live_ * (1 - rest);
      if (rest > 0) by_turns_[below + 1] += live_ * rest;
    }
    live_ = std::max({live_, static_cast<double>(x.at_once), 1.0});
    admit();
  }

  /// How many live now.
  double size() const { return std::accumulate(by_turns_.begin(), by_turns_.end(), 0.0); }
  bool is_over() const { return size() + to_begin_ < over_below; }

  /// Each does a turn; others take the places of those that end.
  void step() {
    for (auto n = by_turns_.size() - 1; n > 0; --n) by_turns_[n] = by_turns_[n - 1] * (1 - ends_);
    by_turns_[0] = 0;
    admit();
  }

private:
  void admit() {
    auto more = std::clamp(live_ - size(), 0.0, std::max(0.0, to_begin_));
    by_turns_[0] += more;
    to_begin_ -= more;
  }

  std::vector<double> by_turns_;
  double live_; ///< as many live at once, while there are any to begin
  double to_begin_;
  double ends_;
};

} // namespace

// Of d episodes that have ended, d (1 - s)^(M - 1) had all of their M turns; the others ended with
// one of the turns that were not the last. The fixed point is the share s.
double early_end_share(const run_pace& x) {
  auto ended = static_cast<double>(x.ended), turns = static_cast<double>(x.turns);
  if (ended == 0 || turns == 0 || x.max_turns < 2) return 0;
  double share = 0.2;
  for (int i = 0; i < 30; ++i) {
    auto whole = ended * std::pow(1 - share, x.max_turns - 1);
    share = std::clamp((ended - whole) / std::max(1.0, turns - whole), 0.0, 0.95);
  }
  return share;
}

forecast forecast_of(const run_pace& x) {
  forecast result;
  bool seen = x.seen_turns >= least_turns && x.live_seconds > 0;
  auto work = seen ? (x.live_seconds - x.wait_seconds) / x.seen_turns : 0;
  auto pace = seen ? x.seconds / x.seen_turns : 0;
  double seconds = behind * work;
  for (population left{x}; !left.is_over(); left.step()) {
    result.turns += left.size();
    seconds += std::max(work, left.size() * pace);
  }
  if (seen && result.turns > 0 && x.seen_turns >= least_share * result.turns)
    result.seconds = seconds;
  return result;
}

} // namespace kernelmill::watch
