#include "actors/lineage/record_follower.hpp"

#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace kernelmill {
namespace record_follower_test {

Message<wire::Record> group(uint32_t number) {
  return build<wire::Record>([&](wire::Record::Builder x) { x.initGroup().setGroup(number); });
}

std::vector<uint32_t> numbers_below(uint32_t end) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < end; ++i) result.push_back(i);
  return result;
}

TEST(record_follower, tells_in_order_and_settles_when_all_is_told) {
  std::vector<uint32_t> told; // by one thread, and read after settle()
  record_follower follower{
      [&](wire::Record::Reader x) { told.push_back(x.getGroup().getGroup()); }};
  follower.settle(); // nothing to wait for
  for (uint32_t i = 0; i < 1000; ++i) follower.push(group(i));
  follower.settle();
  EXPECT_EQ(told, numbers_below(1000));
}

TEST(record_follower, does_not_make_the_committing_thread_wait) {
  std::promise<void> go;
  std::vector<uint32_t> told;
  record_follower follower{[&, wait = go.get_future().share()](wire::Record::Reader x) {
    wait.wait();
    told.push_back(x.getGroup().getGroup());
  }};
  for (uint32_t i = 0; i < 100; ++i) follower.push(group(i)); // returns while the first is told
  go.set_value();
  follower.settle();
  EXPECT_EQ(told, numbers_below(100));
}

TEST(record_follower, holds_a_bounded_number_of_records) {
  std::promise<void> go;
  std::vector<uint32_t> told;
  auto count = static_cast<uint32_t>(record_follower::most_waiting) * 2;
  {
    record_follower follower{[&, wait = go.get_future().share()](wire::Record::Reader x) {
      wait.wait();
      told.push_back(x.getGroup().getGroup());
    }};
    auto pushing = std::async(std::launch::async, [&] {
      for (uint32_t i = 0; i < count; ++i) follower.push(group(i));
    });
    // Not a time that must suffice: the pushing thread stops at the bound however long this takes.
    EXPECT_EQ(pushing.wait_for(std::chrono::milliseconds{50}), std::future_status::timeout);
    go.set_value();
    pushing.get();
  }
  EXPECT_EQ(told, numbers_below(count));
}

TEST(record_follower, rests_after_the_last_record_and_before_it_settles) {
  std::vector<uint32_t> told, written;
  record_follower follower{[&](wire::Record::Reader x) { told.push_back(x.getGroup().getGroup()); },
                           [&] { written = told; }};
  for (uint32_t round = 1; round <= 3; ++round) {
    for (uint32_t i = 0; i < 100; ++i) follower.push(group((round - 1) * 100 + i));
    follower.settle();
    EXPECT_EQ(written, numbers_below(round * 100));
  }
}

TEST(record_follower, tells_what_is_left_before_it_ends) {
  std::vector<uint32_t> told;
  {
    record_follower follower{
        [&](wire::Record::Reader x) { told.push_back(x.getGroup().getGroup()); }};
    for (uint32_t i = 0; i < 50; ++i) follower.push(group(i));
  }
  EXPECT_EQ(told, numbers_below(50));
}

TEST(record_follower, goes_on_after_a_record_that_its_listener_throws_at) {
  std::vector<uint32_t> told;
  record_follower follower{[&](wire::Record::Reader x) {
    if (x.getGroup().getGroup() == 1) throw std::runtime_error{"no"};
    told.push_back(x.getGroup().getGroup());
  }};
  for (uint32_t i = 0; i < 3; ++i) follower.push(group(i));
  follower.settle();
  EXPECT_EQ(told, (std::vector<uint32_t>{0, 2}));
}

} // namespace record_follower_test
} // namespace kernelmill
