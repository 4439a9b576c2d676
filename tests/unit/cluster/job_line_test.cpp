#include "actors/cluster/job_line.hpp"

#include <string>

#include <gtest/gtest.h>

namespace kernelmill {
namespace job_line_test {

envelope of(uint64_t run, int32_t priority = 0) {
  envelope result;
  result.run = run;
  result.priority = priority;
  return result;
}

std::string all_of(job_line<std::string> x) {
  std::string result;
  while (!x.empty()) result += x.pop() + " ";
  return result;
}

TEST(job_line, lets_runs_take_turns) {
  job_line<std::string> x;
  for (auto* job : {"a1", "a2", "a3"}) x.push_back(of(1), job);
  for (auto* job : {"b1", "b2"}) x.push_back(of(2), job);
  EXPECT_EQ(x.size(), 5u);
  EXPECT_EQ(all_of(x), "a1 b1 a2 b2 a3 ");
}

TEST(job_line, does_not_let_a_long_run_starve_one_that_comes_later) {
  job_line<std::string> x;
  for (int i = 0; i < 1000; ++i) x.push_back(of(1), "long");
  EXPECT_EQ(x.pop(), "long");
  x.push_back(of(2), "short");
  EXPECT_EQ(x.pop(), "short");
}

TEST(job_line, takes_first_what_was_taken_before) {
  job_line<std::string> x;
  x.push_back(of(1), "new");
  x.push_front(of(1), "again");
  EXPECT_EQ(x.front(), "again");
  EXPECT_EQ(all_of(x), "again new ");
}

TEST(job_line, front_is_what_pop_takes) {
  job_line<std::string> x;
  for (uint64_t run = 1; run < 5; ++run) x.push_back(of(run * 7 % 5), std::to_string(run));
  while (!x.empty()) {
    auto next = x.front();
    EXPECT_EQ(x.pop(), next);
  }
}

TEST(job_line, the_highest_priority_goes_first_also_when_it_comes_later) {
  job_line<std::string> x;
  for (auto* job : {"a1", "a2", "a3"}) x.push_back(of(1), job);
  EXPECT_EQ(x.pop(), "a1");
  x.push_back(of(2, 1), "b1");
  x.push_back(of(3, 1), "c1");
  x.push_back(of(2, 1), "b2");
  x.push_back(of(4, -1), "d1");
  EXPECT_EQ(all_of(x), "b1 c1 b2 a2 a3 d1 ");
}

TEST(job_line, a_job_that_may_not_go_holds_up_its_own_run_alone) {
  job_line<std::string> x;
  for (auto* job : {"a1", "a2"}) x.push_back(of(1), job);
  for (auto* job : {"b1", "b2"}) x.push_back(of(2), job);
  x.push_back(of(3, -1), "low");
  auto not_a = [](const std::string& job) { return job[0] != 'a'; };
  EXPECT_EQ(x.pop_if(not_a), "b1");
  EXPECT_EQ(x.pop_if(not_a), "b2");
  EXPECT_EQ(x.pop_if(not_a), "low");
  EXPECT_EQ(x.pop_if(not_a), std::nullopt);
  EXPECT_EQ(x.size(), 2u);
  EXPECT_EQ(all_of(x), "a1 a2 ");
}

} // namespace job_line_test
} // namespace kernelmill
