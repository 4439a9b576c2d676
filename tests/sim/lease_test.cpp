#include <gtest/gtest.h>

#include "tests/sim/world.hpp"

namespace kernelmill::sim {
namespace {

std::string outcome_of(const outcome& x) {
  return x.summary ? x.summary->open()->getOutcome().cStr() : "none";
}

TEST(Lease, ASilentWorkersJobGoesToAnotherAfterItsLease) {
  faults how;
  how.worker_silent = 0.3;
  auto sink = std::make_shared<unreliable_sink>(1);
  auto result = run_node(11, plan{}, how, sink, false);
  EXPECT_EQ(outcome_of(result), "finished");
  EXPECT_GT(result.virtual_seconds, 30) << "no lease can have expired";
}

TEST(Lease, ADeadWorkersJobIsLeasedAgainWithoutWaiting) {
  faults how;
  how.worker_dies = 0.2;
  how.slowest_answer_ms = 10;
  auto sink = std::make_shared<unreliable_sink>(1);
  auto result = run_node(12, plan{}, how, sink, false);
  EXPECT_EQ(outcome_of(result), "finished");
  EXPECT_LT(result.virtual_seconds, 30) << "somebody waited for a lease of the dead";
}

TEST(Lease, AFaultThatPersistsIsRecordedAndPaysNothing) {
  faults how;
  how.worker_fault = 1;
  auto sink = std::make_shared<unreliable_sink>(1);
  auto result = run_node(13, plan{}, how, sink, false);
  EXPECT_EQ(outcome_of(result), "finished");
  auto summary = result.summary->open();
  EXPECT_GT(summary->getTotals().getInfrastructure(), 0u);
  EXPECT_EQ(summary->getTotals().getAccepted(), 0u);
}

} // namespace
} // namespace kernelmill::sim
