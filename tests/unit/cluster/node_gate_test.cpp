#include "actors/cluster/node_gate.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "actors/cluster/cluster.hpp"
#include "gpu/task/task.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {
namespace node_gate_test {

using namespace std::chrono_literals;

/// A gate before one compiler that answers at once with a candidate's fault.
class node_gate : public testing::Test {
protected:
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
    }
  };

  static compiler_actor::behavior_type refusing_compiler() {
    return {[](atom::status) { return Message<wire::Snapshot>{}; },
            [](atom::build, const envelope&, const Message<wire::BuildRequest>&) {
              return build<wire::BuildResult>([](wire::BuildResult::Builder x) {
                x.initFault().setClass(wire::FaultClass::CANDIDATE);
                x.getFault().setCategory("compile_error");
              });
            }};
  }

  struct patient_state {
    caf::typed_response_promise<Message<wire::EvaluateResult>> answer;
    static inline const char* name = "patient-runner";
  };

  /// Works on what it is given until it has no waiter; tells `listener` of both.
  static gpu_runner_actor::behavior_type
  patient_runner(gpu_runner_actor::stateful_pointer<patient_state> self, caf::actor listener) {
    return {
        [](atom::status) { return Message<wire::Snapshot>{}; },
        [self, listener](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>&) {
          self->state.answer = self->make_response_promise<Message<wire::EvaluateResult>>();
          caf::anon_send(listener, atom::start_v);
          return self->state.answer;
        },
        [self, listener](atom::cancel, const envelope& where) {
          self->state.answer.deliver(Message<wire::EvaluateResult>{});
          caf::anon_send(listener, atom::cancel_v, where);
        }};
  }

  node_gate() {
    folder_ = testing::TempDir() + "/node-gate-" + std::to_string(::getpid());
    slots_ = system_.spawn(leasing_cluster, lease_policy{});
    compiler_ = system_.spawn(refusing_compiler);
    caf::anon_send(slots_, atom::lease_v, compiler_, uint32_t{1});
    gate_ = spawn_node_gate(system_, "worker", slots_, std::make_shared<parcel_shelf>(folder_));
  }

  ~node_gate() override {
    caf::anon_send_exit(gate_, caf::exit_reason::kill);
    caf::anon_send_exit(slots_, caf::exit_reason::kill);
    caf::anon_send_exit(compiler_, caf::exit_reason::kill);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void join(uint64_t epoch) { self_->send(gate_, atom::join_v, epoch); }

  /// The category of what a build is answered with.
  std::string build_of(uint64_t epoch, uint16_t protocol = protocol_version) {
    envelope where;
    where.epoch = epoch;
    where.protocol = protocol;
    auto request =
        build<wire::BuildRequest>([](wire::BuildRequest::Builder x) { x.setDeadlineMs(60'000); });
    std::string result;
    self_->request(gate_, 60s, atom::build_v, where, request, Message<wire::Parcel>{})
        .receive(
            [&](const Message<wire::BuildResult>& x, const Message<wire::Parcel>&) {
              result = x.open()->getFault().getCategory().cStr();
            },
            [&](caf::error& why) { result = system_.render(why); });
    return result;
  }

  /// What an evaluation of a task needs, as a head sends it.
  Message<wire::Parcel> parcel() const {
    std::filesystem::create_directories(folder_);
    std::string library = "not really a library",
                task = std::string{KERNELMILL_TREE} + "/configs/tasks/native/row_sum";
    std::ofstream{folder_ + "/library.so"} << library;
    parcel_packer packer;
    return packer
        .pack({"native/row_sum", load_task_folder(task).value()->digest, task, sha256_hex(library),
               folder_ + "/library.so"})
        .value();
  }

  configuration config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::string folder_;
  cluster_actor slots_;
  compiler_actor compiler_;
  node_gate_actor gate_;
};

TEST_F(node_gate, refuses_jobs_of_a_head_that_the_node_has_left) {
  EXPECT_EQ(build_of(7), "compile_error") << "a job may be faster than the word of the join";
  join(7);
  EXPECT_EQ(build_of(7), "compile_error");
  join(3);
  EXPECT_EQ(build_of(7), "stale_epoch");
  EXPECT_EQ(build_of(3), "compile_error");
  join(7);
  EXPECT_EQ(build_of(7), "compile_error");
  EXPECT_EQ(build_of(3), "stale_epoch");
}

TEST_F(node_gate, refuses_jobs_of_another_protocol) {
  EXPECT_EQ(build_of(1, protocol_version + 1), "protocol_differs");
  EXPECT_EQ(build_of(1), "compile_error");
}

TEST_F(node_gate, ends_the_candidates_of_a_head_that_is_gone) {
  auto runner = system_.spawn(patient_runner, caf::actor_cast<caf::actor>(self_));
  caf::anon_send(slots_, atom::lease_v, gpu_runner_actor{runner}, uint32_t{1});
  auto head = system_.spawn([this](caf::event_based_actor* self) -> caf::behavior {
    envelope where;
    where.episode = 5;
    self->request(gate_, caf::infinite, atom::evaluate_v, where, Message<wire::EvaluateRequest>{},
                  parcel())
        .then([](const Message<wire::EvaluateResult>&) {});
    return {[](atom::drain) {}}; // stays
  });
  bool begun = false;
  self_->receive([&](atom::start) { begun = true; }, caf::after(60s) >> [] {});
  ASSERT_TRUE(begun);
  caf::anon_send_exit(head, caf::exit_reason::kill);
  uint64_t ended = 0;
  self_->receive([&](atom::cancel, const envelope& where) { ended = where.episode; },
                 caf::after(60s) >> [] {});
  EXPECT_EQ(ended, 5u);
  caf::anon_send_exit(runner, caf::exit_reason::kill);
}

} // namespace node_gate_test
} // namespace kernelmill
