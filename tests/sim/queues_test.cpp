// Workers that get no job, and jobs without a waiter.

#include "tests/sim/queues.hpp"

namespace kernelmill::sim {
namespace queues_test {

TEST_F(queues, give_no_job_to_a_worker_where_a_layer_is_missing_that_its_run_requires) {
  start({});
  auto layers = [&](const std::string& name, uint32_t bits) {
    caf::anon_send(cluster_, atom::lease_v, workers_[name].address(), bits);
  };
  auto ask = [&](uint64_t run, uint32_t bits) {
    system_.spawn([this, run, bits](caf::event_based_actor* self) {
      envelope where;
      where.run = run;
      where.layers = bits;
      self->request(cluster_, caf::infinite, atom::build_v, where, Message<wire::BuildRequest>{})
          .then([this](const Message<wire::BuildResult>&) { answers_.emplace_back(); });
    });
    scheduler().run();
  };
  add_worker("weak", 0);
  layers("weak", 0b001);
  caf::anon_send(cluster_, atom::lease_v, workers_["weak"], uint32_t{2});
  scheduler().run();
  ask(1, 0b011);
  EXPECT_EQ(held_["weak"].size(), 0u) << "it waits for a worker that has the layer";
  ask(2, 0b001);
  EXPECT_EQ(held_["weak"].size(), 1u) << "and holds up no jobs but its own run's";
  add_worker("strong");
  EXPECT_EQ(held_["strong"].size(), 1u);
  answer("strong");
  answer("weak");
  EXPECT_EQ(answers_.size(), 2u);
}

/// A runner that is busy until it is told that its job has no waiter.
struct endless_runner {
  std::vector<caf::typed_response_promise<Message<wire::EvaluateResult>>> held;
  std::vector<uint64_t> cancelled; // traces

  gpu_runner_actor spawn(caf::actor_system& system) {
    return system.spawn([this](gpu_runner_actor::pointer self) -> gpu_runner_actor::behavior_type {
      return {
          [](atom::status) { return Message<wire::Snapshot>{}; },
          [this, self](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>&) {
            return held.emplace_back(self->make_response_promise<Message<wire::EvaluateResult>>());
          },
          [this](atom::cancel, const envelope& where) {
            cancelled.push_back(where.trace);
            held.front().deliver(build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
              x.initFault().setClass(wire::FaultClass::INFRASTRUCTURE);
            }));
            held.erase(held.begin());
          },
      };
    });
  }
};

TEST_F(queues, end_what_a_worker_has_when_its_asker_is_gone) {
  start({});
  endless_runner runner;
  auto who = runner.spawn(system_);
  caf::anon_send(cluster_, atom::lease_v, who, uint32_t{1});
  auto ask = [&](uint64_t trace) {
    auto asker = system_.spawn([this, trace](caf::event_based_actor* self) {
      envelope where;
      where.trace = trace;
      self->request(cluster_, caf::infinite, atom::evaluate_v, where,
                    Message<wire::EvaluateRequest>{})
          .then([this](const Message<wire::EvaluateResult>&) { answers_.emplace_back(); });
    });
    scheduler().run();
    return asker;
  };
  auto first = ask(1);
  ask(2);
  ASSERT_EQ(runner.held.size(), 1u);
  advance(std::chrono::seconds{3});
  EXPECT_TRUE(runner.cancelled.empty()) << "an asker waits";
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
  advance(std::chrono::seconds{2});
  EXPECT_EQ(runner.cancelled, std::vector<uint64_t>{1}) << "and is told once";
  EXPECT_EQ(runner.held.size(), 1u) << "the next one has the slot";
  EXPECT_TRUE(answers_.empty());
  caf::anon_send_exit(who, caf::exit_reason::kill);
  scheduler().run();
  runner.held.clear();
}

TEST_F(queues, end_the_jobs_of_an_envelope_for_its_asker) {
  start({});
  endless_runner runner;
  auto who = runner.spawn(system_);
  caf::anon_send(cluster_, atom::lease_v, who, uint32_t{1});
  // One asker of many jobs, as a node's gate is.
  auto gate = system_.spawn([this](caf::event_based_actor* self) -> caf::behavior {
    return {[this, self](atom::evaluate, uint64_t trace) {
              envelope where;
              where.trace = trace;
              self->request(cluster_, caf::infinite, atom::evaluate_v, where,
                            Message<wire::EvaluateRequest>{})
                  .then([this](const Message<wire::EvaluateResult>& x) {
                    answers_.emplace_back(x.open()->getFault().getCategory().cStr());
                  });
            },
            [this, self](atom::cancel, uint64_t trace) {
              envelope where;
              where.trace = trace;
              self->send(cluster_, atom::cancel_v, where);
            }};
  });
  for (uint64_t trace : {1, 2, 3}) caf::anon_send(gate, atom::evaluate_v, trace);
  scheduler().run();
  envelope where;
  where.trace = 1;
  caf::anon_send(cluster_, atom::cancel_v, where);
  scheduler().run();
  EXPECT_TRUE(runner.cancelled.empty()) << "a stranger cancels nothing";
  caf::anon_send(gate, atom::cancel_v, uint64_t{2});
  caf::anon_send(gate, atom::cancel_v, uint64_t{1});
  scheduler().run();
  EXPECT_EQ(runner.cancelled, std::vector<uint64_t>{1}) << "the second had not begun";
  EXPECT_EQ(answers_.size(), 2u) << "each is answered, so that they can be counted";
  EXPECT_EQ(runner.held.size(), 1u) << "the third is at work";
  for (const auto& x : {caf::actor_cast<caf::actor>(who), gate})
    caf::anon_send_exit(x, caf::exit_reason::kill);
  scheduler().run();
  runner.held.clear();
}

} // namespace queues_test
} // namespace kernelmill::sim
