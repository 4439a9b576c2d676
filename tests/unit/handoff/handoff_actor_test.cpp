#include <gmock/gmock.h>

#include "handoff_fixture.hpp"

namespace kernelmill::handoff {
namespace handoff_actor_test {

using ::testing::ElementsAre;

// What CAF prints of an error by itself is its code and its category.
TEST(errors_between_actors, are_shown_in_words) {
  config settings;
  caf::actor_system system{settings};
  error said{fault_class::infrastructure, "disk_full", "failed to write x", "free some space"};
  EXPECT_EQ(system.render(to_caf(said)), render(said));
  auto back = from_caf(to_caf(said));
  EXPECT_EQ(back.category, "disk_full");
  EXPECT_EQ(back.hint, "free some space");
  EXPECT_EQ(from_caf(caf::sec::request_receiver_down).category, "actor_lost");
}

TEST_F(Handoff, GivesABatchToTheTrainerThatWaitedForIt) {
  EXPECT_EQ(order("run", 2)["requested"], 2);
  auto waiting = send(batch("run", 2, 60'000));
  finish("run", 1);
  finish("run", 0);
  auto got = json::parse(*waiting.get());
  EXPECT_EQ(got["groups"].size(), 2u);
  EXPECT_EQ(got["groups"][0]["rows"][0], got["groups"][0]["id"]);
  EXPECT_EQ(got["groups"][0]["min_version"], "v1");
  EXPECT_EQ(ask(ack_request{1, {"run/g1"}, 3})["left"], 1);
  EXPECT_EQ(ask(ack_request{1, {"other/g1"}, 3})["category"], "bad_request");
  EXPECT_EQ(ask(commit_command{"trainer", 0, 3})["committed_step"], 3);
}

TEST_F(Handoff, AnswersNothingWhenTheTimeIsOver) {
  order("run", 2);
  auto waiting = send(batch("run", 1, 500));
  ask(look_request{"run"}); // it waits by now
  clock_ += 500;
  caf::anon_send(who_, atom::tick_v);
  auto got = json::parse(*waiting.get());
  EXPECT_TRUE(got["lease"].is_null());
  EXPECT_FALSE(got["over"]);
}

TEST_F(Handoff, AClientThatLeavesTakesNoLease) {
  order("run", 1);
  auto waiting = send(batch("run", 1, 60'000), 7);
  caf::anon_send(who_, atom::drop_v, uint64_t{7});
  finish("run", 0);
  EXPECT_EQ(until("run", "ready", 1)["groups"]["leased"], 0);
}

TEST_F(Handoff, KnowsAllAfterAnEnd) {
  order("run", 3);
  finish("run", 0);
  until("run", "ready", 1);
  EXPECT_EQ(ask(batch("run", 1))["lease"], 1);
  host_->standings["run"].groups = {0, 2}; // one was committed, and the trainer did not hear of it
  host_->standings["run"].live = false;    // the machine went down
  end();
  start();
  auto now = until("run", "ready", 1);
  EXPECT_EQ(now["groups"]["leased"], 1);
  while (host_->submits["run"] < 2) ask(look_request{"run"}); // the run is begun again
}

TEST_F(Handoff, HoldsARunWhoseGroupsNoTrainerTakes) {
  order("run", 6, 4);
  for (uint32_t i = 0; i < 4; ++i) finish("run", i);
  EXPECT_EQ(until("run", "ready", 4)["state"], "held");
  ask(batch("run", 1));
  EXPECT_EQ(ask(look_request{"run"})["state"], "held");
  ask(batch("run", 1));
  EXPECT_EQ(ask(look_request{"run"})["state"], "running");
  EXPECT_THAT(host_->holds, ElementsAre("run held", "run let go"));
  EXPECT_EQ(ask(batch("run", 5))["category"], "bad_request");
}

TEST_F(Handoff, HasTheServersOfOrdersLoadWeights) {
  EXPECT_EQ(ask(weights_request{"v1"})["servers"].size(), 0u);
  EXPECT_EQ(ask(weights_request{"v2", {"", "/w", "", {}}})["category"], "weights_refused");
  order_request x;
  x.what.id = "run";
  x.what.form = "rl";
  x.config = R"({"groups": 1, "policy": {"kind": "sglang", "base_url": "http://a/v1"}})";
  ask(x);
  auto loaded = ask(weights_request{"v2", {"", "/w", "", {}}});
  EXPECT_EQ(loaded["ordinal"], 2);
  EXPECT_EQ(loaded["servers"][0]["base_url"], "http://a/v1");
  EXPECT_EQ(loaded["servers"][0]["weight_version"], "v2");
  EXPECT_EQ(ask(weights_request{"v2", {"", "/gone", "", {}}})["category"], "weights_refused");
}

TEST_F(Handoff, AClientFindsItsOwnOrdersAlone) {
  client_ = "a";
  order("run", 2);
  finish("run", 0);
  until("run", "ready", 1);
  auto lease = ask(batch("run", 1))["lease"].get<uint64_t>();
  client_ = "b";
  EXPECT_EQ(ask(look_request{"run"})["category"], "not_found");
  EXPECT_EQ(ask(look_request{})["rollouts"].size(), 0u);
  EXPECT_EQ(ask(cancel_request{"run"})["category"], "not_found");
  EXPECT_EQ(ask(batch("run", 1))["category"], "not_found");
  EXPECT_EQ(ask(ack_request{lease, {}, 1})["category"], "not_found");
  EXPECT_EQ(order("run", 2)["category"], "handoff_conflict");
  end();
  start(); // the log holds whose they are
  EXPECT_EQ(ask(look_request{"run"})["category"], "not_found");
  client_ = "";
  EXPECT_EQ(ask(look_request{})["rollouts"].size(), 1u);
  client_ = "a";
  EXPECT_EQ(ask(ack_request{lease, {}, 1})["left"], 0);
}

TEST_F(Handoff, WeightsGoToAClientsOwnServers) {
  order_request x;
  x.what.id = "run";
  x.what.client = "a";
  x.what.form = "rl";
  x.config = R"({"groups": 1, "policy": {"kind": "vllm", "base_url": "http://a/v1"}})";
  ask(x);
  client_ = "b";
  EXPECT_EQ(ask(weights_request{"v2", {"", "/w", "", {}}})["category"], "weights_refused");
  client_ = "a";
  EXPECT_EQ(ask(weights_request{"v2", {"", "/w", "", {}}})["servers"].size(), 1u);
}

TEST_F(Handoff, GoingBackFencesATrainerThatWaits) {
  order("run", 1);
  auto waiting = send(batch("run", 1, 60'000));
  EXPECT_EQ(ask(rollback_command{"trainer", -1})["generation"], 1);
  EXPECT_EQ(waiting.get().error().category, "consumer_fenced");
}

} // namespace handoff_actor_test
} // namespace kernelmill::handoff
