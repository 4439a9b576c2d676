#include <unistd.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/process/machine_turn.hpp"

using namespace kernelmill;
using namespace std::chrono_literals;

namespace machine_turn_test {

class machine_turns : public testing::Test {
protected:
  // No other test, and no referee of this machine, has it.
  std::string name_of(const std::string& what) {
    names_.push_back("test-" + what + "-" + std::to_string(::getpid()));
    return names_.back();
  }

  void SetUp() override {
    if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "there is no /dev/shm to lock files in";
  }
  void TearDown() override {
    auto folder = "/dev/shm/kernelmill-turns-" + std::to_string(::geteuid()) + "/";
    for (const auto& name : names_)
      for (const char* end : {"", ".waiting"}) std::filesystem::remove(folder + name + end);
  }

private:
  std::vector<std::string> names_;
};

TEST_F(machine_turns, what_is_held_is_not_held_twice) {
  auto name = name_of("one");
  auto first = machine_turn::wait_for({name}, 1s, {});
  ASSERT_TRUE(first.holds());
  EXPECT_FALSE(machine_turn::wait_for({name}, 20ms, {}).holds());
  EXPECT_TRUE(machine_turn::wait_for({name_of("other")}, 20ms, {}).holds());
}

TEST_F(machine_turns, who_waits_has_it_next) {
  auto name = name_of("next");
  auto first = std::make_unique<machine_turn>(machine_turn::wait_for({name}, 1s, {}));
  auto second = std::async(std::launch::async,
                           [&] { return machine_turn::wait_for({name}, 60s, {}).holds(); });
  EXPECT_EQ(second.wait_for(20ms), std::future_status::timeout);
  first.reset();
  EXPECT_TRUE(second.get());
}

TEST_F(machine_turns, sets_that_overlap_wait_in_one_order) {
  std::vector<std::string> forth{name_of("a"), name_of("b")};
  std::vector<std::string> back{forth[1], forth[0]};
  auto often = [](const std::vector<std::string>& names) {
    bool all = true;
    for (int i = 0; i < 20; ++i) all = machine_turn::wait_for(names, 60s, {}).holds() && all;
    return all;
  };
  auto other = std::async(std::launch::async, often, back);
  EXPECT_TRUE(often(forth));
  EXPECT_TRUE(other.get());
}

TEST_F(machine_turns, a_stop_ends_the_wait) {
  auto name = name_of("stop");
  auto held = machine_turn::wait_for({name}, 1s, {});
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return machine_turn::wait_for({name}, 600s, stop.get_token()).holds();
  });
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
}

} // namespace machine_turn_test
