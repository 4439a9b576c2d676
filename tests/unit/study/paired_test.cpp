// Figures that can be told without a program. tests/integration/cli/compare_oracle.py does the same
// arithmetic anew for whole runs.

#include "launch/analysis/study/paired.hpp"
#include "launch/analysis/study/run_comparison.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace kernelmill::study {
namespace paired_test {

TEST(paired, nothing_is_said_of_no_pair_and_no_interval_of_fewer_than_six) {
  EXPECT_FALSE(compare_pairs({}, {}));
  std::vector<paired_value> few{{1, 3}, {1, 2}, {0, 7}, {0, 1}, {2, 9}};
  for (auto i = few.size(); i > 0; --i) {
    auto x = compare_pairs({few.data(), i}, {});
    ASSERT_TRUE(x);
    EXPECT_FALSE(x->low || x->high) << i;
    EXPECT_STREQ(x->no_interval, "few_tasks") << i;
  }
  EXPECT_EQ(compare_pairs({few.data(), 1}, {})->difference, 2);
}

TEST(paired, equal_differences_have_no_interval) {
  std::vector<paired_value> same(9, {1, 1.5});
  auto x = compare_pairs(same, {});
  EXPECT_DOUBLE_EQ(x->difference, 0.5);
  EXPECT_FALSE(x->low);
  EXPECT_STREQ(x->no_interval, "no_spread");
}

// Of six tasks the interval leaves out nothing but the least and the greatest of 63 means.
TEST(paired, six_tasks_exclude_no_difference_only_where_all_favour_one_run) {
  std::vector<paired_value> six{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}};
  auto x = compare_pairs(six, {});
  EXPECT_EQ(*x->low, 1);
  EXPECT_EQ(*x->high, 6);
  EXPECT_EQ(x->no_interval, nullptr);
  six[0].b = -0.1;
  EXPECT_LT(*compare_pairs(six, {})->low, 0);
}

// Ties say nothing for either run.
TEST(paired, four_of_six_tasks_that_tie_show_no_difference) {
  std::vector<paired_value> ties{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 1}, {0, 1}};
  auto x = compare_pairs(ties, {});
  EXPECT_EQ(*x->low, 0);
  EXPECT_EQ(*x->high, 1);
}

TEST(paired, the_same_seed_gives_the_same_interval_and_another_one_nearly_so) {
  std::vector<paired_value> pairs;
  splitmix64 random{3};
  for (int i = 0; i < 200; ++i) pairs.push_back({0, static_cast<double>(random.next() % 1000)});
  auto x = compare_pairs(pairs, {10'000, 1}), again = compare_pairs(pairs, {10'000, 1}),
       other = compare_pairs(pairs, {10'000, 2});
  EXPECT_EQ(*x->low, *again->low);
  EXPECT_EQ(*x->high, *again->high);
  EXPECT_NE(*x->low, *other->low);
  EXPECT_NEAR(*x->low, *other->low, 4);
  // 288.7 / sqrt(200) is the standard error of a mean of 200 numbers below 1000.
  EXPECT_NEAR(*x->high - *x->low, 2 * 1.96 * 288.7 / 14.142, 8);
}

// As `runs` and `status` count them: launch/analysis/watch/run_now.hpp.
TEST(run_comparison, episodes_that_a_fault_of_a_machine_left_open_are_lost) {
  compared_run away, other;
  away.scores["native/gelu"].open = 3;
  away.scores["native/row_sum"].infrastructure = 1;
  away.lost_open = 4; // one of them has no turn, and so no record
  other.scores = {{"native/gelu", {}}, {"native/row_sum", {}}};
  auto left = compare_scores(away, other, {})["left_out"];
  EXPECT_EQ(left["a"]["infrastructure"], 5) << left;
  EXPECT_EQ(left["a"]["open"], 0) << left;
  EXPECT_EQ(left["b"]["infrastructure"], 0) << left;
  other.scores.erase("native/row_sum");
  left = compare_scores(away, other, {})["left_out"];
  EXPECT_EQ(left["a"]["infrastructure"], 3) << "those of the tasks that are compared: " << left;
}

// -- coverage -------------------------------------------------------------------------------------

class made_numbers {
public:
  explicit made_numbers(uint64_t seed) : random_(seed) {}
  double uniform() { return static_cast<double>(random_.next() >> 11) / 9007199254740992.0; }
  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.28318530718 * uniform());
  }

private:
  splitmix64 random_;
};

/// What four episodes of a task come to: rewards as the quickstart has them, wrong kernels among
/// them.
struct made_task {
  double reward = 0, fast = 0, one_try = 0, log_speedup = 0;
  bool timed = false;
};

made_task episodes_of(made_numbers& random, double right, double log_speed) {
  made_task result;
  double timed = 0;
  for (int i = 0; i < 4; ++i) {
    double log_speedup = log_speed + 0.2 * random.normal();
    bool correct = random.uniform() < right;
    result.reward += (correct ? 0.3 + std::min(10.0, std::exp(log_speedup)) : 0.05) / 4;
    result.fast += (correct && log_speedup > 0) / 4.0;
    if (i == 0) result.one_try = correct;
    if (correct) result.log_speedup += log_speedup;
    timed += correct;
  }
  result.timed = timed > 0;
  if (timed > 0) result.log_speedup /= timed;
  return result;
}

struct experiment {
  std::vector<paired_value> reward, fast, one_try, log_speedup;
};

/// Two runs, of which B is better by `gain` in the logarithm of the speed.
experiment two_runs(made_numbers& random, int tasks, double gain) {
  experiment result;
  for (int i = 0; i < tasks; ++i) {
    double right = 0.1 + 0.85 * random.uniform(), speed = 0.3 + 0.4 * random.normal();
    auto a = episodes_of(random, right, speed), b = episodes_of(random, right, speed + gain);
    result.reward.push_back({a.reward, b.reward});
    result.fast.push_back({a.fast, b.fast});
    result.one_try.push_back({a.one_try, b.one_try});
    if (a.timed && b.timed) result.log_speedup.push_back({a.log_speedup, b.log_speedup});
  }
  return result;
}

bool excludes_zero(const std::vector<paired_value>& pairs) {
  auto x = compare_pairs(pairs, {1000, 7});
  return x && x->low && (*x->low > 0 || *x->high < 0);
}

TEST(paired, of_identical_runs_few_intervals_exclude_no_difference) {
  constexpr int experiments = 400;
  for (int tasks : {6, 8, 11, 20, 40}) {
    made_numbers random{static_cast<uint64_t>(tasks)};
    int reward = 0, fast = 0, one_try = 0, log_speedup = 0;
    for (int i = 0; i < experiments; ++i) {
      auto x = two_runs(random, tasks, 0);
      reward += excludes_zero(x.reward);
      fast += excludes_zero(x.fast);
      one_try += excludes_zero(x.one_try);
      log_speedup += excludes_zero(x.log_speedup);
    }
    for (int count : {reward, fast, one_try, log_speedup})
      EXPECT_LE(count, experiments * 0.08) << tasks << " tasks";
    EXPECT_GE(reward, experiments * 0.005) << tasks << " tasks: no interval is that narrow";
  }
}

TEST(paired, a_true_difference_is_held_and_found) {
  constexpr int experiments = 200;
  made_numbers random{11};
  int held = 0, found = 0;
  for (int i = 0; i < experiments; ++i) {
    std::vector<paired_value> skewed; // the mean difference is 0.2
    for (int t = 0; t < 20; ++t)
      skewed.push_back({0, 0.2 - 0.5 * (std::log(1 - random.uniform()) + 1)});
    auto x = compare_pairs(skewed, {1000, 7});
    held += *x->low <= 0.2 && 0.2 <= *x->high;
    found += excludes_zero(two_runs(random, 20, 0.3).log_speedup);
  }
  EXPECT_GE(held, experiments * 0.88);
  EXPECT_GE(found, experiments * 0.9);
}

TEST(sign_test, is_the_binomial_one) {
  EXPECT_DOUBLE_EQ((win_count{0, 0, 5}.p()), 1);
  EXPECT_NEAR((win_count{5, 0, 0}.p()), 0.0625, 1e-12);
  EXPECT_NEAR((win_count{9, 1, 3}.p()), 2 * 11 / 1024.0, 1e-12);
  EXPECT_DOUBLE_EQ((win_count{4, 4, 0}.p()), 1);
  EXPECT_GT((win_count{5000, 5000, 0}.p()), 0.99);
}

TEST(quantiles, are_linear_between_neighbours) {
  double x[] = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(x, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(x, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(x, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(x, 0.25), 1.75);
}

// The first numbers of the published generator for the seed 1234567.
TEST(splitmix64_numbers, are_those_of_the_published_generator) {
  splitmix64 x{1234567};
  EXPECT_EQ(x.next(), 6457827717110365317u);
  EXPECT_EQ(x.next(), 3203168211198807973u);
  EXPECT_EQ(x.next(), 9817491932198370423u);
}

} // namespace paired_test
} // namespace kernelmill::study
