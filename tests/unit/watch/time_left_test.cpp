// How long runs still take, told at each of their turns: of made runs, with queues and long tails,
// and of one that a machine has recorded.

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <functional>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "launch/analysis/watch/time_left.hpp"

namespace kernelmill::watch {
namespace time_left_test {

/// What a run was at its turns, and when it ended.
struct record_of_run {
  std::vector<run_pace> seen; ///< from its start; `seen_turns` of all turns
  double end = 0;

  /// What is known there: the pace is told from the first turn on.
  run_pace at(size_t turn) const {
    auto result = seen[turn];
    result.seconds -= seen[0].seconds;
    result.live_seconds -= seen[0].live_seconds;
    result.wait_seconds -= seen[0].wait_seconds;
    result.seen_turns -= seen[0].seen_turns;
    return result;
  }
};

/// The median of |told - true| / true between the first tenth and the end.
double median_error(const std::vector<record_of_run>& runs) {
  std::vector<double> errors;
  for (const auto& run : runs)
    for (size_t turn = 0; turn < run.seen.size(); ++turn) {
      auto at = run.seen[turn].seconds, left = run.end - at;
      if (at < 0.1 * run.end || left <= 0) continue;
      auto told = forecast_of(run.at(turn)).seconds;
      errors.push_back(told ? std::abs(*told - left) / left : 1);
    }
  std::sort(errors.begin(), errors.end());
  return errors.at(errors.size() / 2);
}

struct made_run {
  uint64_t episodes = 64, at_once = 64;
  uint32_t max_turns = 4;
  double early_end = 0.2; ///< of a turn that was evaluated
  double policy = 6, policy_spread = 0.5;
  double slot = 2, slot_spread = 1; ///< mean, and deviation / mean of a lognormal one
  int compilers = 2, slots = 1;
};

/// An event simulation: policy, a queue for compilers, a queue for slots. Half of the first turns
/// do not compile, so that the first turns are the quick ones.
class simulated_run {
public:
  simulated_run(const made_run& how, uint64_t seed) : how_(how), random_(seed) {
    stations_[0].free = how.compilers;
    stations_[1].free = how.slots;
    now_.episodes = how.episodes;
    now_.at_once = how.at_once;
    now_.max_turns = how.max_turns;
    turns_of_.resize(how.episodes);
  }

  record_of_run play() {
    begin_episodes();
    while (!events_.empty()) {
      auto next = events_.top();
      events_.pop();
      pass_to(next.at);
      if (next.station < 0)
        ask(0, next.episode);
      else
        leave(next.station, next.episode);
    }
    result_.end = now_.seconds;
    return std::move(result_);
  }

private:
  struct event {
    double at;
    int station; ///< -1: the policy
    size_t episode;
    bool operator>(const event& x) const { return at > x.at; }
  };
  struct station {
    int free = 0;
    std::deque<size_t> line;
  };

  double uniform() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }
  double lognormal(double mean, double spread) {
    auto variance = std::log(1 + spread * spread);
    auto normal = std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.28318530718 * uniform());
    return std::exp(std::log(mean) - variance / 2 + std::sqrt(variance) * normal);
  }

  void pass_to(double at) {
    auto seconds = at - now_.seconds;
    auto waiting = stations_[0].line.size() + stations_[1].line.size();
    now_.seconds = at;
    now_.live_seconds += static_cast<double>(now_.live) * seconds;
    now_.wait_seconds += static_cast<double>(waiting) * seconds;
  }

  void sample(size_t episode) {
    events_.push({now_.seconds + lognormal(how_.policy, how_.policy_spread), -1, episode});
  }
  void work(int at, size_t episode) {
    auto seconds = at == 0 ? lognormal(1, 0.5) : lognormal(how_.slot, how_.slot_spread);
    events_.push({now_.seconds + seconds, at, episode});
  }
  void ask(int at, size_t episode) {
    auto& x = stations_[at];
    if (x.free == 0) return x.line.push_back(episode);
    --x.free;
    work(at, episode);
  }
  void leave(int from, size_t episode) {
    auto& x = stations_[from];
    if (x.line.empty()) {
      ++x.free;
    } else {
      work(from, x.line.front());
      x.line.pop_front();
    }
    bool compiled = from == 1 || uniform() > (turns_of_[episode] == 0 ? 0.5 : 0.1);
    if (from == 0 && compiled) return ask(1, episode);
    end_turn(episode, compiled && uniform() < how_.early_end);
  }
  void end_turn(size_t episode, bool early) {
    ++now_.turns;
    now_.seen_turns = static_cast<double>(now_.turns);
    if (++turns_of_[episode] == how_.max_turns || early) {
      ++now_.ended;
      --now_.live;
      now_.ended_turns += turns_of_[episode];
      begin_episodes();
    } else {
      sample(episode);
    }
    result_.seen.push_back(now_);
  }
  void begin_episodes() {
    for (; next_ < how_.episodes && now_.live < how_.at_once; ++now_.live) sample(next_++);
  }

  made_run how_;
  std::mt19937_64 random_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  station stations_[2];
  std::vector<uint32_t> turns_of_;
  size_t next_ = 0;
  run_pace now_;
  record_of_run result_;
};

double median_error(const made_run& how) {
  std::vector<record_of_run> runs;
  for (uint64_t seed = 1; seed <= 40; ++seed) runs.push_back(simulated_run{how, seed}.play());
  return median_error(runs);
}

TEST(time_left, of_made_runs_is_told_within_a_quarter_after_the_first_tenth) {
  struct {
    const char* name;
    made_run how;
  } all[] = {
      {"all at once, one slot", {}},
      {"sixteen at once", {.at_once = 16}},
      {"every episode has all turns", {.at_once = 16, .early_end = 0}},
      {"most episodes end early", {.early_end = 0.6}},
      {"up to eight turns", {.episodes = 32, .at_once = 32, .max_turns = 8}},
      {"long tails of the policy", {.policy_spread = 1, .slot = 0.2}},
      {"longer ones, eight at once", {.at_once = 8, .policy_spread = 1.5, .slot = 0.2}},
      {"long tails of slots", {.episodes = 256, .at_once = 32, .slot_spread = 2, .slots = 2}},
      {"a thousand turns", {.episodes = 256, .at_once = 256, .slots = 2}},
  };
  for (const auto& x : all) EXPECT_LT(median_error(x.how), 0.25) << x.name;
}

TEST(time_left, says_nothing_before_there_is_something_to_go_by) {
  run_pace x{.episodes = 64, .live = 64, .max_turns = 4};
  EXPECT_EQ(forecast_of(x).turns, 256);
  EXPECT_FALSE(forecast_of(x).seconds);
  x.turns = 3;
  x.seen_turns = 3;
  x.seconds = 10;
  x.live_seconds = 640;
  EXPECT_FALSE(forecast_of(x).seconds) << "a twentieth of 256 turns is not done";
}

TEST(time_left, is_nothing_of_a_run_that_is_over) {
  run_pace x{.episodes = 8, .ended = 8, .turns = 20, .ended_turns = 20, .max_turns = 4};
  x.seconds = 10;
  x.seen_turns = 20;
  x.live_seconds = 50;
  EXPECT_EQ(forecast_of(x).turns, 0);
  EXPECT_FALSE(forecast_of(x).seconds);
}

// Four of eight episodes ended with the first of two turns.
TEST(time_left, counts_on_as_many_early_ends_as_there_were) {
  run_pace x{.episodes = 16, .ended = 8, .turns = 12, .ended_turns = 12, .max_turns = 2};
  EXPECT_NEAR(early_end_share(x), 0.5, 0.01);
  x.at_once = 8;
  EXPECT_NEAR(forecast_of(x).turns, 12, 0.1);
}

// Seconds, turns, turns of ended episodes, ended, live, seconds that episodes lived, that they
// waited.
TEST(time_left, of_a_recorded_run_is_told_within_a_quarter_after_the_first_tenth) {
  std::ifstream from{std::string{KERNELMILL_TREE} + "/tests/unit/watch/golden/recorded_run.txt"};
  ASSERT_TRUE(from);
  record_of_run run;
  for (std::string line; std::getline(from, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream in{line};
    run_pace x{.episodes = 64, .max_turns = 4};
    ASSERT_TRUE(in >> x.seconds >> x.turns >> x.ended_turns >> x.ended >> x.live >>
                x.live_seconds >> x.wait_seconds)
        << line;
    x.seen_turns = static_cast<double>(x.turns);
    run.seen.push_back(x);
    run.end = x.seconds;
  }
  EXPECT_EQ(run.seen.back().ended, 64u);
  EXPECT_LT(median_error(std::vector{run}), 0.25);
}

} // namespace time_left_test
} // namespace kernelmill::watch
