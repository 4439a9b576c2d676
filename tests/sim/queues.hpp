#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

#include "actors/cluster/cluster.hpp"
#include "messages/actors.hpp"

namespace kernelmill::sim {

// A cluster actor on virtual time, workers that answer when the test says so, and jobs.
class queues : public testing::Test {
protected:
  using promise = caf::typed_response_promise<Message<wire::BuildResult>>;

  struct simulated : caf::actor_system_config {
    simulated() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
      set("scheduler.policy", caf::atom("testing"));
    }
  };

  void start(lease_policy policy) {
    scheduler().clock().current_time += std::chrono::hours{1}; // time 0 has a special meaning
    cluster_ = system_.spawn(leasing_cluster, policy);
  }

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  // Takes `credits` jobs and keeps their promises in held_[name].
  void add_worker(const std::string& name, uint32_t credits = 1) {
    auto worker =
        system_.spawn([this, name](compiler_actor::pointer self) -> compiler_actor::behavior_type {
          return {
              [this, name](atom::status) { // a promise is kept by its own actor
                auto& mine = held_[name];
                if (!mine.empty()) {
                  mine.front().deliver(Message<wire::BuildResult>{});
                  mine.erase(mine.begin());
                }
                return Message<wire::Snapshot>{};
              },
              [this, name, self](atom::build, const envelope&, const Message<wire::BuildRequest>&) {
                auto& mine = held_[name];
                return mine.emplace_back(self->make_response_promise<Message<wire::BuildResult>>());
              },
          };
        });
    workers_[name] = worker;
    caf::anon_send(cluster_, atom::lease_v, worker, credits);
    scheduler().run();
  }

  // Answers at once that it cannot work, so it is always free; counts the jobs in tries_[name].
  void add_sick_worker(const std::string& name) {
    auto worker =
        system_.spawn([this, name](compiler_actor::pointer) -> compiler_actor::behavior_type {
          return {
              [](atom::status) { return Message<wire::Snapshot>{}; },
              [this, name](atom::build, const envelope&, const Message<wire::BuildRequest>&) {
                ++tries_[name];
                return build<wire::BuildResult>([](wire::BuildResult::Builder x) {
                  auto fault = x.initFault();
                  fault.setClass(wire::FaultClass::INFRASTRUCTURE);
                  fault.setCategory("sick");
                });
              },
          };
        });
    workers_[name] = worker;
    caf::anon_send(cluster_, atom::lease_v, worker, uint32_t{1});
    scheduler().run();
  }

  // The first job keeps the healthy worker busy; the second has failed at the others.
  void let_a_job_wait_for_the_healthy_worker() {
    start({});
    add_worker("healthy");
    submit();
    add_sick_worker("a");
    add_sick_worker("b");
    submit();
    ASSERT_EQ(tries_["a"], 1);
    ASSERT_EQ(tries_["b"], 1);
    ASSERT_TRUE(answers_.empty());
  }

  void submit(int n = 1, const Message<wire::BuildRequest>& request = {}) {
    for (int i = 0; i < n; ++i)
      system_.spawn([this, request](caf::event_based_actor* self) {
        self->request(cluster_, caf::infinite, atom::build_v, envelope{}, request)
            .then([this](const Message<wire::BuildResult>& x) {
              answers_.emplace_back(x.open()->getFault().getCategory().cStr());
            });
      });
    scheduler().run();
  }

  // One job of an asker that no longer wants it.
  void submit_and_end() {
    auto who = system_.spawn([this](caf::event_based_actor* self) {
      self->request(cluster_, caf::infinite, atom::build_v, envelope{},
                    Message<wire::BuildRequest>{})
          .then([this](const Message<wire::BuildResult>&) { answers_.emplace_back("unwanted"); });
    });
    scheduler().run();
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    scheduler().run();
  }

  void answer(const std::string& name) {
    caf::anon_send(workers_[name], atom::status_v);
    scheduler().run();
  }

  void lose(const std::string& name) {
    held_[name].clear();
    caf::anon_send_exit(workers_[name], caf::exit_reason::kill);
    workers_.erase(name);
    scheduler().run();
  }

  void advance(std::chrono::milliseconds time) {
    for (auto end = scheduler().clock().current_time + time;
         scheduler().clock().current_time < end;) {
      scheduler().clock().advance_time(std::chrono::milliseconds{500});
      scheduler().run();
    }
  }

  void TearDown() override {
    for (auto& [name, who] : workers_) caf::anon_send_exit(who, caf::exit_reason::kill);
    caf::anon_send_exit(cluster_, caf::exit_reason::kill);
    scheduler().run();
    held_.clear();
    cluster_ = nullptr;
    workers_.clear();
  }

  simulated config_;
  caf::actor_system system_{config_};
  cluster_actor cluster_;
  std::map<std::string, compiler_actor> workers_;
  std::map<std::string, std::vector<promise>> held_;
  std::map<std::string, int> tries_;
  std::vector<std::string> answers_; // categories of faults, empty: none
};

} // namespace kernelmill::sim
