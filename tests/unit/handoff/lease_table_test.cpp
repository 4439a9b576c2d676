#include "actors/handoff/lease_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "logged_table.hpp"

namespace kernelmill::handoff {
namespace lease_table_test {

using ::testing::ElementsAre;
using ::testing::Pair;

lease_command wish(uint32_t groups, const std::string& request = {}, uint64_t generation = 0) {
  return {"run", "trainer", request, generation, groups, 1000};
}

logged_table with_ready(uint32_t groups, uint32_t ready) {
  logged_table result;
  result.order("run", groups);
  for (uint32_t i = 0; i < ready; ++i) result.ready("run", i);
  return result;
}

TEST(LeaseTable, AGroupGoesFromOpenToCommitted) {
  auto d = with_ready(2, 2);
  EXPECT_TRUE(d.tell(wish(2)));
  EXPECT_EQ(d.state("run", 0), group_state::leased);
  EXPECT_TRUE(d.tell(ack_command{1, {0, 1}, 7}));
  EXPECT_EQ(d.state("run", 1), group_state::acked);
  EXPECT_TRUE(d.tell(commit_command{"trainer", 0, 7}));
  EXPECT_EQ(d.count("run", group_state::committed), 2u);
  EXPECT_TRUE(d.now.find("run")->over());
}

TEST(LeaseTable, AnOrderIsOneOrderHoweverOftenItComes) {
  auto d = with_ready(2, 1);
  order_command again;
  again.id = "run";
  again.digest = "digest";
  again.groups = 2;
  auto events = d.log.size();
  EXPECT_TRUE(d.tell(again));
  EXPECT_EQ(d.log.size(), events);
  again.digest = "another";
  EXPECT_EQ(category_of(d.tell(again)), "handoff_conflict");
}

TEST(LeaseTable, GivesWholeBatchesUntilNoMoreCanCome) {
  auto d = with_ready(3, 1);
  EXPECT_TRUE(d.tell(wish(2)));
  EXPECT_EQ(d.now.latest_lease(), 0u);
  d.ready("run", 1);
  EXPECT_TRUE(d.tell(wish(2)));
  EXPECT_EQ(d.now.find_lease(1)->groups.size(), 2u);
  d.ready("run", 2);
  EXPECT_TRUE(d.tell(wish(2))); // of its own lease nothing comes back before it gives it back
  EXPECT_THAT(d.now.find_lease(2)->groups, ElementsAre(2));
}

TEST(LeaseTable, WaitsForGroupsThatAnotherMayGiveBack) {
  auto d = with_ready(3, 3);
  EXPECT_TRUE(d.tell(lease_command{"run", "other", "", 0, 2, 1000}));
  EXPECT_TRUE(d.tell(wish(2)));
  EXPECT_EQ(d.now.latest_lease(), 1u);
  EXPECT_TRUE(d.tell(ack_command{1, {}, 1}));
  EXPECT_TRUE(d.tell(wish(2)));
  EXPECT_THAT(d.now.find_lease(2)->groups, ElementsAre(2));
}

TEST(LeaseTable, TheSameRequestIsTheSameLease) {
  auto d = with_ready(4, 4);
  EXPECT_TRUE(d.tell(wish(2, "r1")));
  EXPECT_TRUE(d.tell(wish(2, "r1")));
  EXPECT_EQ(d.now.latest_lease(), 1u);
  EXPECT_EQ(d.now.open_lease("trainer", "r1"), 1u);
  EXPECT_EQ(category_of(d.tell(wish(3, "r1"))), "handoff_conflict");
  EXPECT_TRUE(d.tell(ack_command{1, {}, 1}));
  EXPECT_EQ(category_of(d.tell(wish(2, "r1"))), "handoff_conflict");
  EXPECT_TRUE(d.tell(wish(2, "r2")));
  EXPECT_EQ(d.now.latest_lease(), 2u);
}

TEST(LeaseTable, ALeaseThatExpiresGivesItsGroupsToTheNext) {
  auto d = with_ready(2, 2);
  EXPECT_TRUE(d.tell(wish(2, "r1"), 0));
  EXPECT_EQ(d.now.next_expiry(), 1000);
  EXPECT_TRUE(d.keep(d.now.expire(999)));
  EXPECT_EQ(d.count("run", group_state::leased), 2u);
  EXPECT_TRUE(d.keep(d.now.expire(1000)));
  EXPECT_EQ(d.count("run", group_state::ready), 2u);
  EXPECT_EQ(category_of(d.tell(ack_command{1, {}, 1}, 1001)), "lease_lost");
  EXPECT_TRUE(d.tell(wish(2, "r1"), 1001)); // who asks again by the same request gets a new one
  EXPECT_EQ(d.now.open_lease("trainer", "r1"), 2u);
  EXPECT_EQ(category_of(d.tell(ack_command{1, {0}, 1}, 1001)), "lease_lost");
}

TEST(LeaseTable, AcknowledgesAPartAndTheRestLater) {
  auto d = with_ready(3, 3);
  EXPECT_TRUE(d.tell(wish(3)));
  EXPECT_TRUE(d.tell(ack_command{1, {1}, 5}));
  EXPECT_TRUE(d.tell(ack_command{1, {1}, 5}));
  EXPECT_EQ(category_of(d.tell(ack_command{1, {1}, 6})), "handoff_conflict");
  EXPECT_TRUE(d.tell(ack_command{1, {}, 6}));
  EXPECT_TRUE(d.tell(commit_command{"trainer", 0, 5}));
  EXPECT_EQ(d.state("run", 1), group_state::committed);
  EXPECT_EQ(d.state("run", 0), group_state::acked);
  EXPECT_TRUE(d.tell(ack_command{1, {1}, 5})); // its answer was lost
  EXPECT_EQ(category_of(d.tell(ack_command{1, {7}, 5})), "bad_request");
  EXPECT_EQ(category_of(d.tell(ack_command{9, {}, 5})), "not_found");
}

TEST(LeaseTable, NothingIsAcknowledgedForAStepThatIsCommitted) {
  auto d = with_ready(2, 2);
  EXPECT_TRUE(d.tell(wish(1)));
  EXPECT_TRUE(d.tell(commit_command{"trainer", 0, 4}));
  EXPECT_EQ(category_of(d.tell(ack_command{1, {}, 4})), "handoff_conflict");
  EXPECT_TRUE(d.tell(ack_command{1, {}, 5}));
  auto events = d.log.size();
  EXPECT_TRUE(d.tell(commit_command{"trainer", 0, 3})); // an old answer that was lost
  EXPECT_EQ(d.log.size(), events);
}

TEST(LeaseTable, GoingBackGivesBackWhatCameAfterTheCheckpoint) {
  auto d = with_ready(4, 4);
  for (int64_t step = 1; step <= 3; ++step) {
    EXPECT_TRUE(d.tell(wish(1)));
    EXPECT_TRUE(d.tell(ack_command{static_cast<uint64_t>(step), {}, step}));
  }
  EXPECT_TRUE(d.tell(commit_command{"trainer", 0, 2}));
  EXPECT_TRUE(d.tell(wish(1)));
  EXPECT_TRUE(d.tell(rollback_command{"trainer", 1}));
  EXPECT_EQ(d.state("run", 0), group_state::committed);
  EXPECT_EQ(d.count("run", group_state::ready), 3u);
  EXPECT_EQ(d.now.consumer("trainer").committed, 1);
  EXPECT_TRUE(d.tell(wish(3, {}, 1)));
  EXPECT_THAT(d.now.find_lease(5)->groups, ElementsAre(1, 2, 3)); // in the order of before
}

// It was killed between its checkpoint and the commit.
TEST(LeaseTable, GoingBackToAStepCommitsIt) {
  auto d = with_ready(1, 1);
  EXPECT_TRUE(d.tell(wish(1)));
  EXPECT_TRUE(d.tell(ack_command{1, {}, 1}));
  EXPECT_TRUE(d.tell(rollback_command{"trainer", 1}));
  EXPECT_EQ(d.state("run", 0), group_state::committed);
  EXPECT_TRUE(d.now.leases().empty());
}

TEST(LeaseTable, ATrainerThatWasReplacedIsFenced) {
  auto d = with_ready(3, 3);
  EXPECT_TRUE(d.tell(wish(1)));
  EXPECT_TRUE(d.tell(rollback_command{"trainer", -1}));
  EXPECT_EQ(category_of(d.tell(ack_command{1, {}, 1})), "lease_lost");
  EXPECT_EQ(category_of(d.tell(wish(1))), "consumer_fenced");
  EXPECT_EQ(category_of(d.tell(commit_command{"trainer", 0, 1})), "consumer_fenced");
  EXPECT_TRUE(d.tell(wish(1, {}, 1)));
}

TEST(LeaseTable, GroupsOfOldWeightsAreDroppedWhenTheyAreAskedFor) {
  logged_table d;
  d.order("run", 4, 1);
  for (const char* version : {"a", "b", "c"}) EXPECT_TRUE(d.keep(d.now.declare(version, 0)));
  EXPECT_TRUE(d.keep(d.now.declare("c", 0))); // the same again
  EXPECT_EQ(d.now.latest_ordinal(), 3u);
  d.ready("run", 0, "a");
  d.ready("run", 1, "b");
  d.ready("run", 2, "elsewhere");
  d.ready("run", 3);
  EXPECT_TRUE(d.tell(wish(4)));
  EXPECT_THAT(d.now.find_lease(1)->groups, ElementsAre(1));
  EXPECT_THAT(d.now.find("run")->reasons,
              ElementsAre(Pair("stale", 1), Pair("version_unknown", 2)));
}

TEST(LeaseTable, CancellingDropsWhatNobodyHas) {
  auto d = with_ready(4, 3);
  EXPECT_TRUE(d.tell(wish(2)));
  EXPECT_TRUE(d.tell(ack_command{1, {0}, 1}));
  EXPECT_TRUE(d.keep(d.now.cancel("run", 0)));
  EXPECT_EQ(d.count("run", group_state::dropped), 2u);
  EXPECT_EQ(d.state("run", 1), group_state::leased);
  EXPECT_TRUE(d.keep(d.now.expire(5000)));
  EXPECT_EQ(d.state("run", 1), group_state::dropped);
  EXPECT_TRUE(d.now.find("run")->over());
  auto events = d.log.size();
  EXPECT_TRUE(d.keep(d.now.cancel("run", 0)));
  EXPECT_EQ(d.log.size(), events);
}

TEST(LeaseTable, AGroupSettlesOnce) {
  auto d = with_ready(2, 1);
  EXPECT_TRUE(d.tell(settle_command{"run", 0, 4, {}, not_compared}));
  EXPECT_EQ(d.state("run", 0), group_state::ready);
  EXPECT_TRUE(d.tell(settle_command{"run", 1, 0, {}, not_compared}));
  EXPECT_TRUE(d.tell(close_command{"run", incomplete}));
  EXPECT_THAT(d.now.find("run")->reasons, ElementsAre(Pair("not_compared", 1)));
  EXPECT_EQ(category_of(d.tell(settle_command{"run", 9, 4, {}, {}})), "bad_request");
  EXPECT_EQ(category_of(d.tell(settle_command{"none", 0, 4, {}, {}})), "not_found");
}

TEST(LeaseTable, AnOrderWithoutARunCanBeWithdrawn) {
  logged_table d;
  d.order("run", 1);
  EXPECT_TRUE(d.keep(d.now.withdraw("run", 0)));
  EXPECT_EQ(d.now.find("run"), nullptr);
  d.order("run", 2);
  d.ready("run", 0);
  EXPECT_TRUE(d.now.withdraw("run", 0).empty());
}

TEST(LeaseTable, RefusesEventsThatItCannotHaveCaused) {
  auto d = with_ready(2, 2);
  EXPECT_TRUE(d.tell(wish(2)));
  auto before = text_of(d.now);
  for (const auto& x : d.log) { // each of them a second time
    auto ok = d.now.apply(*x.open());
    EXPECT_EQ(category_of(ok), "store_damaged");
  }
  EXPECT_EQ(text_of(d.now), before);
}

} // namespace lease_table_test
} // namespace kernelmill::handoff
