// A slot where no referee can work any more: its runner ends, and the work goes elsewhere or is
// lost with a reason. The referee here is a program that ends at once, as one does whose GPU is
// gone.

#include <cstdlib>
#include <future>
#include <memory>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cluster/cluster.hpp"
#include "actors/gpu_runner/gpu_runner.hpp"

namespace kernelmill {
namespace quarantine_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

class quarantine : public testing::Test {
protected:
  void SetUp() override {
    config_.add_message_types<caf::id_block::kernelmill>();
    config_.add_message_types<caf::id_block::kernelmill_handles>();
    system_ = std::make_unique<caf::actor_system>(config_);
    const char* programs = std::getenv("KERNELMILL_BIN_DIR");
    ASSERT_NE(programs, nullptr) << "run this by ctest";
    auto launched = spawner::launch(std::string{programs} + "/kernelmill-spawner");
    ASSERT_TRUE(launched) << render(launched.error());
    processes_ = std::make_unique<spawner>(std::move(*launched));
  }

  gpu_runner_actor sick_runner() {
    auto referee = referee_client::launch(*processes_, "/bin/false", {});
    EXPECT_TRUE(referee) << render(referee.error());
    return spawn_referee_runner(*system_, std::make_shared<referee_client>(std::move(*referee)),
                                "gpu0", [this](const std::string& slot, const error& why) {
                                  told_.set_value(slot + ": " + render(why));
                                });
  }

  caf::actor_system_config config_;
  std::unique_ptr<spawner> processes_;
  std::unique_ptr<caf::actor_system> system_;
  std::promise<std::string> told_;
};

TEST_F(quarantine, three_faults_in_a_row_and_a_probe_that_fails_end_the_runner) {
  caf::scoped_actor self{*system_};
  auto runner = sick_runner();
  self->monitor(runner);
  for (int i = 0; i < 3; ++i)
    self->request(runner, 60s, atom::evaluate_v, envelope{}, Message<wire::EvaluateRequest>{})
        .receive(
            [](const Message<wire::EvaluateResult>& x) {
              EXPECT_EQ(x.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
            },
            [](caf::error& why) { FAIL() << caf::to_string(why); });
  self->receive([&](const caf::down_msg& down) { EXPECT_EQ(down.source, runner.address()); },
                caf::after(60s) >> [] { FAIL() << "the runner goes on"; });
  auto told = told_.get_future();
  ASSERT_EQ(told.wait_for(0s), std::future_status::ready);
  EXPECT_THAT(told.get(), HasSubstr("gpu0: failed to keep slot gpu0"));
}

TEST_F(quarantine, when_the_last_runner_is_gone_what_waits_is_lost_with_a_reason) {
  caf::scoped_actor self{*system_};
  auto cluster = system_->spawn(leasing_cluster, lease_policy{60s, 3, false});
  caf::anon_send(cluster, atom::lease_v, sick_runner(), uint32_t{1});
  for (int i = 0; i < 2; ++i) // the second finds no runner
    self->request(cluster, 120s, atom::evaluate_v, envelope{}, Message<wire::EvaluateRequest>{})
        .receive(
            [](const Message<wire::EvaluateResult>& x) {
              auto fault = x.open()->getFault();
              EXPECT_EQ(fault.getClass(), wire::FaultClass::INFRASTRUCTURE);
              EXPECT_THAT(
                  fault.getCategory().cStr(),
                  testing::AnyOf(testing::StrEq("worker_lost"), testing::StrEq("referee_lost")));
            },
            [](caf::error& why) { FAIL() << caf::to_string(why); });
  caf::anon_send_exit(cluster, caf::exit_reason::user_shutdown);
}

} // namespace quarantine_test
} // namespace kernelmill
