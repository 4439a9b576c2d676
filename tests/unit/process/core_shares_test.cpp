#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/process/core_shares.hpp"

using namespace kernelmill;

namespace core_shares_test {

std::vector<int> numbers(int count) {
  std::vector<int> result;
  for (int i = 0; i < count; ++i) result.push_back(i);
  return result;
}

bool anyone(int /*core*/) {
  return true;
}

TEST(core_shares, compilers_keep_off_the_cores_of_every_gpu) {
  for (size_t gpus : {1u, 2u, 4u}) {
    auto shares = share_cores(numbers(16), gpus, anyone);
    ASSERT_EQ(shares.timed.size(), gpus);
    std::set<int> taken;
    for (const auto& cores : shares.timed) {
      EXPECT_EQ(cores.size(), 2u);
      taken.insert(cores.begin(), cores.end());
    }
    EXPECT_EQ(taken.size(), 2 * gpus);
    EXPECT_EQ(shares.compilers.size(), 16 - 2 * gpus);
    for (int core : shares.compilers) EXPECT_EQ(taken.count(core), 0u);
  }
}

TEST(core_shares, few_cores_serve_all) {
  auto shares = share_cores(numbers(3), 1, anyone);
  EXPECT_EQ(shares.timed, (std::vector<std::vector<int>>{{}}));
  EXPECT_TRUE(shares.compilers.empty());
  EXPECT_TRUE(share_cores(numbers(16), 0, anyone).timed.empty());
}

TEST(core_shares, what_another_node_has_is_free_for_none_here) {
  auto shares = share_cores(numbers(8), 1, [](int core) { return core != 7 && core != 5; });
  EXPECT_EQ(shares.timed[0], (std::vector<int>{6, 4}));
  EXPECT_EQ(shares.compilers, numbers(4));
  auto none = share_cores(numbers(4), 1, [](int) { return false; });
  EXPECT_TRUE(none.timed[0].empty());
  EXPECT_EQ(none.compilers, numbers(1));
}

TEST(core_shares, two_nodes_of_one_machine_take_different_cores) {
  if (cores_of_this_process().size() < 8) GTEST_SKIP() << "there are few cores";
  auto first = share_cores(1);
  auto second = share_cores(1);
  for (int core : first.timed[0])
    EXPECT_EQ(std::count(second.timed[0].begin(), second.timed[0].end(), core), 0);
}

} // namespace core_shares_test
