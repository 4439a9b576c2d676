#include "launch/analysis/report/speedups.hpp"

#include <string>

#include <gtest/gtest.h>

#include "messages/message.hpp"

namespace kernelmill::reporting {

namespace speedups_test {

Message<wire::TurnRecord> accepted_as(const char* category) {
  return build<wire::TurnRecord>([&](wire::TurnRecord::Builder x) {
    x.setTurn(1);
    auto timing = x.initFacts().initEvaluation().initTiming();
    timing.setMeasured(true);
    auto speedup = timing.initSpeedup();
    speedup.setLow(1.9);
    speedup.setEstimate(2);
    speedup.setHigh(2.1);
    auto verdict = x.initVerdict();
    verdict.setOutcome(wire::Outcome::ACCEPTED);
    verdict.setCategory(category);
  });
}

TEST(counted_speedup, is_that_of_an_accepted_turn_and_none_of_a_copy) {
  auto own = accepted_as("success");
  EXPECT_TRUE(is_timed(*own.open()));
  EXPECT_EQ(counted_speedup(*own.open(), 0)->low, 1.9);
  EXPECT_FALSE(counted_speedup(*own.open(), 2)); // another run's turn
  auto copy = accepted_as("unchanged");
  EXPECT_FALSE(is_timed(*copy.open()));
  EXPECT_FALSE(counted_speedup(*copy.open(), 0));
}

} // namespace speedups_test

} // namespace kernelmill::reporting
