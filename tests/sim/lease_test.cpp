#include <optional>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

#include "actors/cluster/cluster.hpp"
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

} // namespace
} // namespace kernelmill::sim
