// What the HANDOFF does about runs, machines and groups that fail.

#include <gmock/gmock.h>

#include "handoff_fixture.hpp"

namespace kernelmill::handoff {
namespace handoff_trouble_test {

using ::testing::HasSubstr;

TEST_F(Handoff, TriesAgainWhereAMachineFailed) {
  host_->fault = fault_class::infrastructure;
  auto first = order("run", 1);
  EXPECT_EQ(first["state"], "waiting");
  EXPECT_EQ(first["trouble"], "no space");
  clock_ += 2000;
  caf::anon_send(who_, atom::tick_v);
  while (ask(look_request{"run"})["state"] != "running") std::this_thread::yield();
}

TEST_F(Handoff, AnOrderOutlivesAPolicyServerThatIsAway) {
  constexpr int64_t seconds = 1'000'000'000;
  order("run", 1, 0, seconds);
  for (int i = 1; i <= 12; ++i) { // more often than a machine's fault is put up with
    {
      std::lock_guard guard{host_->mutex};
      host_->standings["run"] = {true, false, "failed", true, {}, "no server answers", true};
    }
    caf::anon_send(who_, atom::finished_v, std::string{"run"});
    json now;
    do now = ask(look_request{"run"});
    while (now["state"] != "waiting" || now["trouble"].is_null());
    EXPECT_THAT(now["trouble"].get<std::string>(), HasSubstr("no server answers"));
    do {
      clock_ += 1000;
      caf::anon_send(who_, atom::tick_v);
      now = ask(look_request{"run"});
    } while (now["state"] != "running");
    EXPECT_THAT(now["trouble"].get<std::string>(), HasSubstr("no server answers"))
        << "it says so until a group is there";
    std::lock_guard guard{host_->mutex};
    EXPECT_EQ(host_->submits["run"], i + 1);
  }
  finish("run", 0);
  EXPECT_EQ(until("run", "ready", 1)["trouble"], nullptr);
}

TEST_F(Handoff, TheDeadlineEndsAnOrderWhosePolicyServerStaysAway) {
  order("run", 1, 0, 10);
  {
    std::lock_guard guard{host_->mutex};
    host_->standings["run"] = {true, false, "failed", true, {}, "no server answers", true};
  }
  caf::anon_send(who_, atom::finished_v, std::string{"run"});
  clock_ += 10'000;
  caf::anon_send(who_, atom::tick_v);
  EXPECT_EQ(until("run", "dropped", 1)["dropped"]["deadline"], 1);
}

TEST_F(Handoff, AMachineThatFailsAgainAndAgainIsGivenUp) {
  order("run", 1);
  json now;
  do {
    {
      std::lock_guard guard{host_->mutex};
      host_->standings["run"] = {true, false, "failed", true, {}, "no space", false};
    }
    caf::anon_send(who_, atom::finished_v, std::string{"run"});
    clock_ += 60'000;
    caf::anon_send(who_, atom::tick_v);
    now = ask(look_request{"run"});
  } while (now["state"] != "settled");
  EXPECT_EQ(now["dropped"]["incomplete"], 1);
}

TEST_F(Handoff, AnOrderThatCannotRunIsNone) {
  host_->refuses = true;
  EXPECT_EQ(order("run", 1)["category"], "run_exists");
  EXPECT_EQ(ask(look_request{"run"})["category"], "not_found");
  host_->refuses = false;
  EXPECT_EQ(order("run", 1)["state"], "running");
  order_request wrong;
  wrong.what.id = "wrong";
  wrong.config = R"({"wrong": 1})";
  EXPECT_EQ(ask(wrong)["category"], "config_unknown_key");
}

TEST_F(Handoff, ARunThatEndsDropsWhatItOwes) {
  order("run", 2);
  finish("run", 0);
  until("run", "ready", 1);
  host_->standings["run"] = {true, false, "finished", false, {}};
  caf::anon_send(who_, atom::finished_v, std::string{"run"});
  EXPECT_EQ(until("run", "dropped", 1)["dropped"]["incomplete"], 1);
}

TEST_F(Handoff, ADeadlineEndsTheRunAndKeepsWhatIsReady) {
  order("run", 3, 0, 10);
  finish("run", 0);
  until("run", "ready", 1);
  clock_ += 10'000;
  caf::anon_send(who_, atom::tick_v);
  EXPECT_EQ(until("run", "dropped", 2)["dropped"]["deadline"], 2);
  EXPECT_EQ(ask(batch("run", 4))["groups"].size(), 1u);
  while (host_->cancelled.empty()) ask(look_request{"run"});
}

TEST_F(Handoff, AGroupThatIsLostIsDroppedAfterABound) {
  order("run", 2);
  {
    std::lock_guard guard{host_->mutex};
    host_->damaged = {1};
    host_->standings["run"].groups = {0, 1};
  }
  finish("run", 1);
  for (json now; now["dropped"]["unreadable"] != 1; now = ask(look_request{"run"})) {
    clock_ += 60'000;
    caf::anon_send(who_, atom::tick_v);
  }
  EXPECT_EQ(ask(look_request{"run"})["groups"]["ready"], 1);
}

TEST_F(Handoff, AnOrderWhoseStoreIsLostEnds) {
  order("run", 3);
  {
    std::lock_guard guard{host_->mutex};
    host_->store_lost = true;
  }
  caf::anon_send(who_, atom::finished_v, std::string{"run"});
  json now;
  do {
    clock_ += 60'000;
    caf::anon_send(who_, atom::tick_v);
    now = ask(look_request{"run"});
  } while (!now["over"]);
  EXPECT_EQ(now["dropped"]["unreadable"], 3);
  EXPECT_EQ(now["trouble"], "there is no store");
}

TEST_F(Handoff, AReadyGroupThatIsLostIsDroppedWhenItIsGiven) {
  order("run", 2);
  finish("run", 0);
  finish("run", 1);
  until("run", "ready", 2);
  {
    std::lock_guard guard{host_->mutex};
    host_->damaged = {0};
  }
  auto first = send(batch("run", 2)).get();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().cls, fault_class::infrastructure); // so that clients ask again
  auto second = json::parse(*send(batch("run", 2)).get());
  ASSERT_EQ(second["groups"].size(), 1u);
  EXPECT_EQ(second["groups"][0]["id"], "run/g1");
  EXPECT_EQ(ask(look_request{"run"})["dropped"]["unreadable"], 1);
}

} // namespace handoff_trouble_test
} // namespace kernelmill::handoff
