#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

#include "actors/cluster/cluster.hpp"
#include "tests/sim/queues.hpp"
#include "tests/sim/world.hpp"

namespace kernelmill::sim {
namespace lease_test {

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
  EXPECT_LT(result.virtual_seconds, 30) << "a job waited for a lease of the dead";
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

TEST(Lease, ARunWhoseMachineLosesMostTurnsEndsEarlyAndSaysSo) {
  faults how;
  how.worker_fault = 1;
  plan what;
  what.groups = 40;
  auto sink = std::make_shared<unreliable_sink>(1);
  auto result = run_node(16, what, how, sink, false);
  EXPECT_EQ(outcome_of(result), "failed");
  auto summary = result.summary->open();
  EXPECT_STREQ(summary->getFault().getCategory().cStr(), "machine_faults");
  EXPECT_GE(summary->getTotals().getTurns(), 32u);
  EXPECT_LT(summary->getTotals().getTurns(), 60u);
  // The machine is well again: what is left is done, and what was lost stays so.
  auto again = run_node(17, what, faults{}, sink, true);
  EXPECT_EQ(outcome_of(again), "finished");
}

bool has_no_reward(wire::TurnRecord::Reader turn) {
  return turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE;
}

TEST(Lease, ALostTurnHasNoRewardInItsEpisodeAndNoPartInItsReturns) {
  faults how;
  how.worker_fault = 0.6;
  uint32_t lost = 0, after_good_ones = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto sink = std::make_shared<unreliable_sink>(1);
    ASSERT_EQ(outcome_of(run_node(seed, plan{}, how, sink, false)), "finished");
    for (auto& [key, record] : sink->records()) {
      auto view = record.open();
      if (view->isTurn() && has_no_reward(view->getTurn())) {
        ++lost;
        EXPECT_TRUE(std::isnan(view->getTurn().getVerdict().getReward())) << key;
      }
      if (!view->isEpisode()) continue;
      auto x = view->getEpisode();
      if (x.getOutcome() != wire::Outcome::INFRASTRUCTURE || x.getTurns() == 0) continue;
      auto last = x.getTurns() - 1; // a lost turn ends its episode
      EXPECT_TRUE(std::isnan(x.getRewards()[last])) << key;
      EXPECT_TRUE(std::isnan(x.getReturns()[last])) << key;
      if (last == 0) continue;
      ++after_good_ones;
      EXPECT_EQ(x.getReturns()[last - 1], x.getRewards()[last - 1]) << key;
      EXPECT_NE(x.getBestTurn(), last) << key;
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(after_good_ones, 0u);
}

bool is_unpaid(wire::EpisodeRecord::Reader x) {
  return x.getReturns().size() > 0 && std::isnan(x.getReturns()[0]);
}

TEST(Lease, WhatNoMachineCanTimeIsLeftOutOfItsGroupsComparison) {
  faults how;
  how.not_timed = 1;
  auto sink = std::make_shared<unreliable_sink>(1);
  auto result = run_node(14, plan{}, how, sink, false);
  EXPECT_EQ(outcome_of(result), "finished");
  auto totals = result.summary->open()->getTotals();
  EXPECT_GT(totals.getNotTimed(), 0u);
  EXPECT_GT(totals.getAccepted(), 0u) << "a right kernel is right also where it has no time";
  EXPECT_EQ(totals.getInfrastructure(), 0u);
  std::map<uint32_t, std::set<uint32_t>> unpaid;
  uint32_t untimed = 0;
  for (auto& [key, record] : sink->records()) {
    auto view = record.open();
    if (!view->isEpisode()) continue;
    auto x = view->getEpisode();
    untimed += x.getNotTimed();
    EXPECT_EQ(is_unpaid(x), x.getNotTimed() > 0) << key;
    if (is_unpaid(x)) unpaid[x.getEpisode().getGroup()].insert(x.getEpisode().getMember());
  }
  EXPECT_EQ(untimed, totals.getNotTimed());
  EXPECT_EQ(totals.getUnpaid(), unpaid[0].size() + unpaid[1].size());
  for (auto& [key, record] : sink->records()) {
    auto view = record.open();
    if (!view->isGroup()) continue;
    auto group = view->getGroup();
    std::set<uint32_t> left_out{group.getLeftOut().begin(), group.getLeftOut().end()};
    EXPECT_EQ(left_out, unpaid[group.getGroup()]) << key;
    for (auto member : left_out) EXPECT_TRUE(std::isnan(group.getAdvantages()[member])) << key;
  }
}

TEST(Lease, WhatOneMachineCouldNotTimeIsTriedOnOthers) {
  faults how;
  how.not_timed = 0.3;
  uint32_t untimed = 0, turns = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto sink = std::make_shared<unreliable_sink>(1);
    auto result = run_node(seed, plan{}, how, sink, false);
    ASSERT_EQ(outcome_of(result), "finished");
    untimed += result.summary->open()->getTotals().getNotTimed();
    for (auto& [key, record] : sink->records()) {
      auto view = record.open();
      turns +=
          view->isTurn() && view->getTurn().getVerdict().getOutcome() == wire::Outcome::ACCEPTED;
    }
  }
  EXPECT_GT(turns, 100u);
  EXPECT_LT(untimed, turns / 10) << "three attempts leave 2.7 %";
}

TEST_F(queues, lease_a_straggler_twice_and_take_the_first_answer) {
  lease_policy policy;
  policy.hedge_factor = 3;
  start(policy);
  add_worker("quick");
  for (int i = 0; i < 8; ++i) { // to know how long a job takes
    submit();
    answer("quick");
  }
  ASSERT_EQ(answers_.size(), 8u);
  submit();
  ASSERT_EQ(held_["quick"].size(), 1u);
  add_worker("idle");
  advance(std::chrono::seconds{5});
  ASSERT_EQ(held_["idle"].size(), 1u) << "no worker took the straggler's job a second time";
  answer("idle");
  EXPECT_EQ(answers_.size(), 9u);
  answer("quick"); // late, and of no matter
  EXPECT_EQ(answers_.size(), 9u);
  submit(2); // both are free again
  EXPECT_EQ(held_["quick"].size() + held_["idle"].size(), 2u);
}

TEST_F(queues, lease_no_straggler_twice_to_one_worker) {
  lease_policy policy;
  policy.hedge_factor = 3;
  start(policy);
  add_worker("alone", 2);
  for (int i = 0; i < 8; ++i) {
    submit();
    answer("alone");
  }
  submit();
  advance(std::chrono::seconds{5});
  EXPECT_EQ(held_["alone"].size(), 1u);
  answer("alone");
  EXPECT_EQ(answers_.size(), 9u);
}

TEST_F(queues, wait_for_a_busy_worker_when_the_free_ones_are_sick) {
  let_a_job_wait_for_the_healthy_worker();
  answer("healthy");
  ASSERT_EQ(held_["healthy"].size(), 1u) << "it did not get the job that waits";
  answer("healthy");
  EXPECT_EQ(answers_, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(tries_["a"] + tries_["b"], 2);
}

TEST_F(queues, give_a_job_that_waits_to_a_worker_that_joins) {
  let_a_job_wait_for_the_healthy_worker();
  add_worker("new");
  ASSERT_EQ(held_["new"].size(), 1u);
  answer("new");
  answer("healthy");
  EXPECT_EQ(answers_, (std::vector<std::string>{"", ""}));
}

TEST_F(queues, believe_a_fault_that_all_workers_have) {
  start({});
  add_sick_worker("a");
  add_sick_worker("b");
  submit();
  EXPECT_EQ(answers_, std::vector<std::string>{"sick"});
  EXPECT_EQ(tries_["a"], 2);
  EXPECT_EQ(tries_["b"], 1);
}

TEST_F(queues, let_a_job_rest_before_its_last_attempt) {
  auto policy = leases_of_own_slots(std::chrono::minutes{3});
  start(policy);
  add_sick_worker("a");
  add_sick_worker("b");
  submit();
  EXPECT_EQ(tries_["a"] + tries_["b"], 2);
  EXPECT_TRUE(answers_.empty()) << "its machine is believed to be sick for good";
  add_worker("healthy");
  EXPECT_TRUE(held_["healthy"].empty());
  advance(policy.rest + std::chrono::seconds{1}); // the next look
  ASSERT_EQ(held_["healthy"].size(), 1u);
  answer("healthy");
  EXPECT_EQ(answers_, std::vector<std::string>{""});
}

// Both jobs end: the one that waited after its third attempt, and so the one that was orphaned.
TEST_F(queues, try_the_sick_again_when_the_healthy_worker_is_gone) {
  let_a_job_wait_for_the_healthy_worker();
  lose("healthy");
  EXPECT_EQ(answers_, (std::vector<std::string>{"sick", "sick"}));
  EXPECT_EQ(tries_["a"] + tries_["b"], 5);
}

TEST_F(queues, try_the_sick_again_when_the_healthy_worker_is_retired) {
  let_a_job_wait_for_the_healthy_worker();
  caf::anon_send(cluster_, atom::retire_v, workers_["healthy"].address());
  scheduler().run();
  EXPECT_EQ(answers_, std::vector<std::string>{"sick"});
  answer("healthy"); // what it has it may finish
  EXPECT_EQ(answers_, (std::vector<std::string>{"sick", ""}));
}

// The handlers of a request that is never answered stay in the cluster for good.
TEST_F(queues, keep_nothing_of_a_job_whose_worker_was_lost) {
  start({});
  add_worker("lost");
  auto kept = std::make_shared<int>(0);
  std::weak_ptr<int> left = kept; // of the request
  submit(1, Message<wire::BuildRequest>{
                kj::heapArray<capnp::word>(1).attach(std::move(kept))}); // it is not opened
  lose("lost");
  EXPECT_FALSE(left.expired());
  add_worker("other");
  answer("other");
  EXPECT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(left.expired());
}

TEST_F(queues, do_not_work_for_an_asker_that_has_ended) {
  start({});
  add_worker("w");
  submit();
  submit_and_end();
  submit();
  ASSERT_EQ(held_["w"].size(), 1u);
  answer("w"); // the second was never given out
  EXPECT_EQ(held_["w"].size(), 1u);
  answer("w");
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_TRUE(held_["w"].empty());
}

TEST_F(queues, survive_the_loss_of_many_nodes_but_not_of_any_number) {
  lease_policy policy;
  policy.attempts = 2;
  policy.losses = 4;
  start(policy);
  submit();
  int lost = 0;
  for (; answers_.empty() && lost < 20; ++lost) {
    add_worker("n");
    ASSERT_EQ(held_["n"].size(), 1u);
    lose("n");
  }
  EXPECT_EQ(lost, 6);
  EXPECT_EQ(answers_, std::vector<std::string>{"worker_lost"});
}

// Each node knows of its own losses alone.
TEST_F(queues, tell_the_next_judge_that_a_referee_was_lost) {
  start({});
  std::vector<bool> told;
  std::vector<std::string> faults;
  for (int i = 0; i < 3; ++i) {
    auto worker = system_.spawn([&](gpu_runner_actor::pointer) -> gpu_runner_actor::behavior_type {
      return {
          [](atom::status) { return Message<wire::Snapshot>{}; },
          [&](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request) {
            told.push_back(request.open()->getLostBefore());
            return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
              const auto& category = faults[told.size() - 1];
              if (category.empty()) return;
              x.initFault().setClass(wire::FaultClass::INFRASTRUCTURE);
              x.getFault().setCategory(category);
            });
          },
          [](atom::cancel, const envelope&) {},
      };
    });
    caf::anon_send(cluster_, atom::lease_v, worker, uint32_t{1});
  }
  scheduler().run();
  for (const char* first : {"referee_lost", "referee_killed"}) {
    told.clear();
    faults = {first, ""};
    system_.spawn([this](caf::event_based_actor* self) {
      self->request(cluster_, caf::infinite, atom::evaluate_v, envelope{},
                    Message<wire::EvaluateRequest>{})
          .then([this](const Message<wire::EvaluateResult>&) { answers_.emplace_back("judged"); });
    });
    scheduler().run();
    EXPECT_EQ(told, (std::vector<bool>{false, first == std::string{"referee_lost"}}));
  }
  EXPECT_EQ(answers_.size(), 2u);
}

TEST_F(queues, give_a_retired_worker_nothing_and_take_what_it_has) {
  start({});
  add_worker("old", 2);
  submit();
  ASSERT_EQ(held_["old"].size(), 1u);
  caf::anon_send(cluster_, atom::retire_v, workers_["old"].address());
  submit();
  EXPECT_EQ(held_["old"].size(), 1u);
  answer("old");
  EXPECT_EQ(answers_.size(), 1u);
  add_worker("new");
  EXPECT_EQ(held_["new"].size(), 1u);
  answer("new");
  EXPECT_EQ(answers_.size(), 2u);
}

// The job comes before any worker; the worker that then takes it never answers, and no other job
// comes to remind the cluster of its leases.
TEST(Lease, AJobThatWaitedForItsWorkerHasALeaseThatExpires) {
  using promise = caf::typed_response_promise<Message<wire::BuildResult>>;
  caf::actor_system_config config;
  config.add_message_types<caf::id_block::kernelmill>();
  config.add_message_types<caf::id_block::kernelmill_handles>();
  config.set("scheduler.policy", caf::atom("testing"));
  caf::actor_system system{config};
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  scheduler.clock().current_time += std::chrono::hours{1}; // time 0 has a special meaning
  auto cluster = system.spawn(leasing_cluster, lease_policy{std::chrono::seconds{30}, 1});
  std::optional<std::string> category;
  system.spawn([&, cluster](caf::event_based_actor* self) {
    self->request(cluster, caf::infinite, atom::build_v, envelope{}, Message<wire::BuildRequest>{})
        .then([&](const Message<wire::BuildResult>& x) {
          category = x.open()->getFault().getCategory().cStr();
        });
  });
  scheduler.run();

  std::vector<promise> unanswered;
  auto silent = system.spawn([&](compiler_actor::pointer self) -> compiler_actor::behavior_type {
    return {
        [](atom::status) { return Message<wire::Snapshot>{}; },
        [&, self](atom::build, const envelope&, const Message<wire::BuildRequest>&) {
          return unanswered.emplace_back(self->make_response_promise<Message<wire::BuildResult>>());
        },
    };
  });
  caf::anon_send(cluster, atom::lease_v, silent, uint32_t{1});
  scheduler.run();
  EXPECT_EQ(unanswered.size(), 1u);
  EXPECT_FALSE(category);
  for (int i = 0; i < 100 && !category && scheduler.clock().trigger_timeout(); ++i) scheduler.run();
  EXPECT_EQ(category, "worker_lost");

  for (auto& who : {caf::actor_cast<caf::actor>(cluster), caf::actor_cast<caf::actor>(silent)})
    caf::anon_send_exit(who, caf::exit_reason::kill);
  scheduler.run();
  unanswered.clear();
}

} // namespace lease_test
} // namespace kernelmill::sim
