// A monitor among actors that answer, are silent, and end.

#include <chrono>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/gather.hpp"
#include "actors/monitor/monitor.hpp"

namespace kernelmill {
namespace monitor_test {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct test_config : caf::actor_system_config {
  test_config() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    set("scheduler.policy", caf::atom("testing"));
  }
};

struct talker_state {
  uint64_t asked = 0;
  bool silent = false;
  std::vector<caf::typed_response_promise<Message<wire::Snapshot>>> owed;
  static inline const char* name = "talker";
};

using talker = status_actor::stateful_pointer<talker_state>;

status_actor::behavior_type talk(talker self, std::string id) {
  return {[self, id](atom::status) -> caf::result<Message<wire::Snapshot>> {
    auto& s = self->state;
    ++s.asked;
    if (s.silent) {
      s.owed.push_back(self->make_response_promise<Message<wire::Snapshot>>());
      return s.owed.back();
    }
    return signed_by(self, snapshot_of("talker", id, "fine", {}, {{"done", s.asked}}));
  }};
}

class monitor : public testing::Test {
protected:
  monitor() : system(config) {
    sched().clock().current_time += 1h; // time 0 is special
    who = system.spawn(gathering_monitor);
    for (auto* id : {"a", "b"}) {
      talkers.push_back(system.spawn(talk, id));
      caf::anon_send(who, atom::observe_v, talkers.back());
    }
    run();
  }

  ~monitor() override {
    for (auto& x : talkers) caf::anon_send_exit(x, caf::exit_reason::kill);
    caf::anon_send_exit(who, caf::exit_reason::kill);
    run();
  }

  caf::scheduler::test_coordinator& sched() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  }
  void run() {
    while (sched().try_run_once()) {
    }
  }
  void pass(std::chrono::milliseconds time) {
    for (auto step = 100ms; time > 0ms; time -= step) {
      sched().clock().advance_time(step);
      run();
    }
  }
  talker_state& state(size_t i) { return caf::actor_cast<talker>(talkers[i])->state; }
  gathering_monitor_state& own() {
    return caf::actor_cast<monitor_actor::stateful_pointer<gathering_monitor_state>>(who)->state;
  }

  /// The answer once `patience` has passed.
  Message<wire::Snapshot> look(std::chrono::milliseconds patience = 0ms) {
    Message<wire::Snapshot> result;
    auto asker = system.spawn([&](caf::event_based_actor* self) {
      self->request(who, caf::infinite, atom::status_v).then([&](const Message<wire::Snapshot>& x) {
        result = x;
      });
    });
    run();
    pass(patience);
    caf::anon_send_exit(asker, caf::exit_reason::kill);
    run();
    return result;
  }

  test_config config;
  caf::actor_system system;
  monitor_actor who;
  std::vector<status_actor> talkers;
};

double number_of(wire::Snapshot::Reader x, std::string_view name) {
  for (auto n : x.getNumbers())
    if (name == n.getName().cStr()) return n.getValue();
  return -1;
}

TEST_F(monitor, shows_everybody_with_mailbox_and_number) {
  auto seen = look();
  ASSERT_FALSE(seen.empty());
  auto view = seen.open();
  ASSERT_EQ(view->getChildren().size(), 2u);
  auto first = view->getChildren()[0];
  EXPECT_EQ(first.getId(), "a");
  EXPECT_EQ(number_of(first, "mailbox"), 0);
  EXPECT_EQ(number_of(first, "actor"), talkers[0].id());
  EXPECT_GE(number_of(first, "progress_seconds"), 0);
}

TEST_F(monitor, viewers_that_come_together_share_one_round) {
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(look().empty());
  EXPECT_EQ(state(0).asked, 1u);
  EXPECT_EQ(own().views, 10u);
  EXPECT_EQ(own().rounds, 1u);
}

TEST_F(monitor, one_that_is_silent_is_stuck_and_not_waited_for_twice) {
  ASSERT_FALSE(look().empty());
  pass(1500ms);
  state(1).silent = true;
  auto seen = look(4000ms);
  ASSERT_FALSE(seen.empty());
  auto view = seen.open();
  auto stuck = view->getChildren()[1];
  EXPECT_EQ(stuck.getId(), "b") << "it is known from before";
  EXPECT_EQ(stuck.getState(), "stuck");
  EXPECT_THAT(stuck.getDetail().cStr(), HasSubstr("has not answered for"));
  EXPECT_THAT(stuck.getDetail().cStr(), HasSubstr("it was fine"));
  EXPECT_EQ(view->getChildren()[0].getState(), "fine");
  auto asked = state(1).asked;
  pass(5000ms);
  ASSERT_FALSE(look().empty()) << "at once";
  EXPECT_EQ(state(1).asked, asked) << "its mailbox does not fill with questions";
}

TEST_F(monitor, a_gatherer_asks_everybody_also_behind_many_that_are_silent) {
  std::vector<status_actor> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(system.spawn(talk, std::to_string(i)));
    caf::actor_cast<talker>(crowd.back())->state.silent = i < 60;
  }
  auto gatherer =
      spawn_gatherer(system, crowd, snapshot_of("run", "r", "running", "d", {{"x", 1}}),
                     [](size_t i) { return snapshot_of("talker", std::to_string(i), {}, {}, {}); });
  Message<wire::Snapshot> seen;
  auto asker = system.spawn([&](caf::event_based_actor* self) {
    self->request(gatherer, caf::infinite, atom::status_v)
        .then([&](const Message<wire::Snapshot>& x) { seen = x; });
  });
  run();
  pass(1000ms);
  EXPECT_TRUE(seen.empty()) << "the silent ones have two seconds";
  pass(1500ms);
  EXPECT_FALSE(seen.empty());
  auto view = seen.open();
  auto all = view->getChildren();
  EXPECT_EQ(all.size(), 200u);
  for (unsigned i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].getId(), std::to_string(i).c_str());
    EXPECT_EQ(all[i].getState(), i < 60 ? "stuck" : "fine") << i;
  }
  EXPECT_EQ(view->getDetail(), "d");
  EXPECT_EQ(number_of(*view, "x"), 1);
  for (auto& x : crowd) caf::anon_send_exit(x, caf::exit_reason::kill);
  run();
}

TEST_F(monitor, samples_for_a_minute_after_the_last_viewer_and_then_rests) {
  ASSERT_FALSE(look().empty());
  pass(30'000ms);
  EXPECT_GE(state(0).asked, 25u);
  pass(40'000ms);
  auto asked = state(0).asked;
  pass(120'000ms);
  EXPECT_EQ(state(0).asked, asked) << "without a reader it costs nothing";
}

TEST_F(monitor, a_worker_that_ended_by_a_fault_is_shown_as_gone) {
  ASSERT_FALSE(look().empty());
  caf::anon_send_exit(talkers[1], caf::exit_reason::kill);
  run();
  pass(1500ms);
  auto seen = look();
  ASSERT_FALSE(seen.empty());
  auto view = seen.open();
  ASSERT_EQ(view->getChildren().size(), 2u);
  EXPECT_EQ(view->getChildren()[1].getState(), "gone");
  EXPECT_EQ(view->getChildren()[1].getId(), "b");
}

} // namespace monitor_test
} // namespace kernelmill
