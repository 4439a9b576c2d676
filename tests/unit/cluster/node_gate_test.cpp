#include "actors/cluster/node_gate.hpp"

#include <chrono>
#include <filesystem>

#include <unistd.h>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "actors/cluster/cluster.hpp"

namespace kernelmill {
namespace {

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

} // namespace
} // namespace kernelmill
