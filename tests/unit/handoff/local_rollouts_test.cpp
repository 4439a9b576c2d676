// What a host of rollouts reads of runs whose store another actor of this process still has.

#include "launch/server/rollouts/local_rollouts.hpp"
#include "messages/base/json_value.hpp"

#include <chrono>
#include <optional>
#include <thread>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::rollouts {
namespace local_rollouts_test {

using namespace kernelmill::fixtures;

// An actor that had the store of an ended run last closes it when its last reference is gone.
TEST(local_rollouts, wait_for_a_store_that_is_being_closed) {
  temporary_folder folder;
  auto run = create_run({folder / "demo", "demo", {}}, {{"run", nlohmann::ordered_json::object()}},
                        nlohmann::ordered_json::object());
  ASSERT_TRUE(run) << render(run.error());
  std::optional<store> held{*store::open({.directory = run->store, .durable = false})};
  ASSERT_TRUE(held->commit({make_turn(0, 0, 0), make_episode(0, 0, {0.3}), make_group(0, {0})}));

  caf::actor_system_config config;
  caf::actor_system system{config};
  local_options options;
  options.root = folder.path();
  auto host = make_local_rollouts(system, std::move(options));
  std::jthread closing{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50}); // most of which the host waits
    held.reset();
  }};
  auto found = host->look("demo", {0, 1});
  ASSERT_TRUE(found) << render(found.error());
  EXPECT_EQ(found->groups, std::vector<uint32_t>{0});
}

} // namespace local_rollouts_test
} // namespace kernelmill::rollouts
