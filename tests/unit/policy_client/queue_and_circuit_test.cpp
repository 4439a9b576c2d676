#include <gtest/gtest.h>

#include "actors/policy_client/circuit_breaker.hpp"
#include "actors/policy_client/fair_queue.hpp"

namespace kernelmill {
namespace queue_and_circuit_test {

using std::chrono::milliseconds;
using state = circuit_breaker::state;

kernelmill::envelope of(uint64_t run, int32_t priority = 0) {
  kernelmill::envelope result;
  result.run = run;
  result.priority = priority;
  return result;
}

TEST(fair_queue, lets_runs_take_turns_and_keeps_order_within_one) {
  fair_queue queue;
  for (uint64_t id : {1, 2, 3}) queue.push(of(10), id);
  queue.push(of(20), 4);
  queue.push(of(30), 5);
  std::vector<uint64_t> order;
  while (auto id = queue.pop()) order.push_back(*id);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 4, 5, 2, 3}));
}

TEST(fair_queue, a_request_that_comes_back_keeps_its_place) {
  fair_queue queue;
  queue.push(of(1), 7);
  queue.push(of(1), 3);
  queue.push(of(1), 3);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.pop(), 3u);
  queue.erase(of(1), 7);
  queue.erase(of(9), 9);
  EXPECT_FALSE(queue.pop());
}

TEST(fair_queue, the_highest_priority_goes_first) {
  fair_queue queue;
  for (uint64_t id : {1, 2}) queue.push(of(10, -5), id);
  for (uint64_t id : {3, 4}) queue.push(of(20), id);
  queue.push(of(30, 7), 5);
  queue.push(of(40), 6);
  queue.erase(of(20), 4);
  std::vector<uint64_t> order;
  while (auto id = queue.pop()) order.push_back(*id);
  EXPECT_EQ(order, (std::vector<uint64_t>{5, 3, 6, 1, 2}));
}

TEST(circuit_breaker, opens_after_failures_in_a_row_and_closes_after_one_success) {
  circuit_breaker breaker{3, milliseconds{1000}, milliseconds{4000}};
  circuit_breaker::time_point t{milliseconds{1000000}};
  for (int i = 0; i < 2; ++i) breaker.fail(t, false, 0);
  EXPECT_TRUE(breaker.allows(t));
  breaker.fail(t, false, 0);
  EXPECT_EQ(breaker.current(), state::open);
  EXPECT_FALSE(breaker.allows(t + milliseconds{999}));
  EXPECT_TRUE(breaker.allows(t + milliseconds{1000}));
  EXPECT_TRUE(breaker.begin());
  EXPECT_FALSE(breaker.allows(t + milliseconds{1001})) << "one trial at a time";
  breaker.fail(t + milliseconds{1100}, true, 0);
  EXPECT_FALSE(breaker.allows(t + milliseconds{3099})) << "twice as long the second time";
  EXPECT_TRUE(breaker.allows(t + milliseconds{3100}));
  EXPECT_TRUE(breaker.begin());
  breaker.succeed();
  EXPECT_EQ(breaker.current(), state::closed);
  EXPECT_FALSE(breaker.begin());
}

TEST(circuit_breaker, a_trial_without_verdict_makes_room_for_another) {
  circuit_breaker breaker{1};
  circuit_breaker::time_point t{milliseconds{5}};
  breaker.fail(t, false, 0);
  t += milliseconds{2000};
  ASSERT_TRUE(breaker.allows(t));
  ASSERT_TRUE(breaker.begin());
  breaker.release(true);
  EXPECT_TRUE(breaker.allows(t));
}

TEST(circuit_breaker, a_success_in_between_starts_the_count_again) {
  circuit_breaker breaker{2};
  circuit_breaker::time_point t{};
  for (int i = 0; i < 10; ++i) {
    breaker.fail(t, false, 0);
    breaker.succeed();
  }
  EXPECT_EQ(breaker.current(), state::closed);
}

TEST(circuit_breaker, threshold_zero_never_opens) {
  circuit_breaker breaker{0};
  for (int i = 0; i < 100; ++i) breaker.fail({}, false, 0);
  EXPECT_TRUE(breaker.allows({}));
}

} // namespace queue_and_circuit_test
} // namespace kernelmill
