// Trainers that crash and a server that is killed, drawn at random: what the trainers' checkpoints
// hold in the end is each group once, and the log says the same.
//
// A failing test prints its seed; KERNELMILL_HANDOFF_SEED replays it, KERNELMILL_HANDOFF_RUNS says
// how many are drawn.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actors/handoff/lease_table.hpp"
#include "folder.hpp"
#include "logged_table.hpp"
#include "storage/lineage/handoff_ledger.hpp"

namespace kernelmill::handoff {
namespace handoff_drawn_test {

using place = std::pair<std::string, uint32_t>;

uint64_t number_from(const char* name, uint64_t otherwise) {
  auto* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

/// A server that may be killed before or after each transaction: its log stays, its table is made
/// from it again.
class server {
public:
  explicit server(std::mt19937_64& random) : random_(random) {
    // nop
  }

  /// As a client that asks again until it has an answer.
  template <class F>
  expected<void> ask(F&& check) {
    for (;;) {
      bool killed_before = random_() % 8 == 0, killed_after = random_() % 8 == 0;
      expected<events> caused = check(std::as_const(state_), clock_);
      if (killed_before) {
        start();
        continue;
      }
      KM_TRY(caused);
      log_.insert(log_.end(), caused->begin(), caused->end());
      if (killed_after) {
        start();
        continue;
      }
      apply(*caused);
      return {};
    }
  }

  void pass(int64_t ms) {
    clock_ += ms;
    EXPECT_TRUE(
        ask([](const lease_table& x, int64_t now) -> expected<events> { return x.expire(now); }));
  }

  const lease_table& state() const { return state_; }
  const events& log() const { return log_; }

  /// Killed and started: all is as before.
  void check_replay() {
    auto before = text_of(state_);
    start();
    EXPECT_EQ(text_of(state_), before);
    for (const auto& [id, of] : state_.orders()) {
      EXPECT_EQ(sum_of(of), of.groups.size());
      uint32_t dropped = 0;
      for (const auto& [reason, count] : of.reasons) dropped += count;
      EXPECT_EQ(dropped, of.count(group_state::dropped));
    }
  }

private:
  void apply(const events& xs) {
    for (const auto& x : xs) {
      auto ok = state_.apply(*x.open());
      ASSERT_TRUE(ok) << render(ok.error());
    }
  }

  void start() {
    state_ = {};
    apply(log_);
  }

  std::mt19937_64& random_;
  lease_table state_;
  events log_;
  int64_t clock_ = 1;
};

/// What the log says when it has been on disk.
std::string through_a_ledger(const events& log) {
  folder where;
  {
    auto ledger = handoff_ledger::open({.directory = where.path, .durable = false});
    EXPECT_TRUE(ledger && ledger->append(log));
  }
  auto ledger = handoff_ledger::open({.directory = where.path, .durable = false});
  lease_table read;
  auto ok =
      ledger
          ? ledger->scan(1, [&](uint64_t, wire::HandoffEvent::Reader x) { return read.apply(x); })
          : expected<void>{tl::unexpected<error>{ledger.error()}};
  EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
  return text_of(read);
}

/// Learns from groups, and crashes. Its checkpoint says which groups it has learned from.
class trainer {
public:
  trainer(std::mt19937_64& random, server& from, std::string name)
      : random_(random), from_(from), name_(std::move(name)) {
    start();
  }

  /// One step of a training loop, or a crash in the middle of one.
  void act(const std::string& order) {
    if (crashes()) return start();
    auto request = "r" + std::to_string(requests_++);
    lease_command wish{order, name_, request, generation_, static_cast<uint32_t>(1 + random_() % 3),
                       100};
    auto ok = from_.ask([&](const lease_table& x, int64_t now) { return x.check(wish, now); });
    ASSERT_TRUE(ok) << render(ok.error());
    auto number = from_.state().open_lease(name_, request);
    if (number == 0) return;
    auto groups = from_.state().find_lease(number)->groups;
    if (random_() % 6 == 0) from_.pass(static_cast<int64_t>(random_() % 150)); // it is slow
    if (crashes()) return start();
    ack_command ack{number, {}, step_ + 1};
    auto taken = from_.ask([&](const lease_table& x, int64_t now) { return x.check(ack, now); });
    if (!taken) {
      EXPECT_EQ(taken.error().category, "lease_lost");
      return;
    }
    if (crashes()) return start();
    ++step_; // learns
    for (auto group : groups) learned_[{order, group}] = step_;
    if (crashes()) return start();
    if (random_() % 2 == 0) save();
  }

  /// To its durable checkpoint; then it may be that it comes to say so.
  void save() {
    if (step_ < 0) return; // it has learned nothing
    checkpoints_[step_] = learned_;
    if (crashes()) return start();
    commit_command x{name_, generation_, step_};
    auto ok = from_.ask([&](const lease_table& b, int64_t now) { return b.check(x, now); });
    EXPECT_TRUE(ok) << render(ok.error());
  }

  const std::map<place, int64_t>& learned() const { return learned_; }
  void calm() { calm_ = true; }

private:
  bool crashes() { return !calm_ && random_() % 12 == 0; }

  /// From its latest checkpoint, now and then from an earlier one, or from nothing.
  void start() {
    auto back = checkpoints_.empty() ? 0 : random_() % 5;
    while (back == 0 && !checkpoints_.empty() && random_() % 2 == 0)
      checkpoints_.erase(std::prev(checkpoints_.end()));
    step_ = checkpoints_.empty() ? -1 : checkpoints_.rbegin()->first;
    learned_ = checkpoints_.empty() ? std::map<place, int64_t>{} : checkpoints_.rbegin()->second;
    rollback_command x{name_, step_};
    auto ok = from_.ask([&](const lease_table& b, int64_t now) { return b.check(x, now); });
    EXPECT_TRUE(ok) << render(ok.error());
    generation_ = from_.state().consumer(name_).generation;
  }

  std::mt19937_64& random_;
  server& from_;
  std::string name_;
  uint64_t generation_ = 0;
  uint64_t requests_ = 0;
  int64_t step_ = -1;
  bool calm_ = false;
  std::map<place, int64_t> learned_;
  std::map<int64_t, std::map<place, int64_t>> checkpoints_;
};

void draw(uint64_t seed) {
  SCOPED_TRACE("KERNELMILL_HANDOFF_SEED=" + std::to_string(seed));
  std::mt19937_64 random{seed};
  server s{random};
  std::map<std::string, uint32_t> orders;
  for (const char* id : {"one", "two"}) {
    order_command x;
    x.id = id;
    x.groups = static_cast<uint32_t>(1 + random() % 12);
    x.max_off_policy = random() % 2 == 0 ? 2 : -1;
    orders[id] = x.groups;
    ASSERT_TRUE(s.ask([&](const lease_table& b, int64_t now) { return b.check(x, now); }));
  }
  std::vector<trainer> trainers;
  trainers.reserve(2);
  for (const char* name : {"alice", "bob"}) trainers.emplace_back(random, s, name);
  uint64_t versions = 0;
  auto declare = [&] {
    ++versions;
    ASSERT_TRUE(s.ask([&](const lease_table& b, int64_t now) -> expected<events> {
      return b.declare("v" + std::to_string(versions), now);
    }));
  };
  declare();
  auto settle = [&](const std::string& id, uint32_t group) {
    settle_command x{id, group, 4, {"v" + std::to_string(versions)}, {}};
    if (random() % 10 == 0) x.flaw = not_compared;
    ASSERT_TRUE(s.ask([&](const lease_table& b, int64_t now) { return b.check(x, now); }));
  };
  for (int i = 0; i < 60; ++i) {
    auto id = random() % 2 == 0 ? "one" : "two";
    if (random() % 2 == 0) settle(id, static_cast<uint32_t>(random() % orders[id]));
    if (random() % 10 == 0) declare();
    if (random() % 5 == 0) s.pass(static_cast<int64_t>(random() % 120));
    trainers[random() % 2].act(id);
    if (random() % 8 == 0) s.check_replay();
    if (random() % 60 == 0) {
      ASSERT_TRUE(s.ask([&](const lease_table& b, int64_t now) { return b.cancel("two", now); }));
    }
  }
  // The rest in peace: all is settled, learned and saved.
  for (const auto& [id, count] : orders)
    for (uint32_t group = 0; group < count; ++group) settle(id, group);
  for (auto& x : trainers) x.calm();
  for (int i = 0; i < 200; ++i) {
    s.pass(200);
    for (const auto& [id, count] : orders) trainers[static_cast<size_t>(i) % 2].act(id);
  }
  for (auto& x : trainers) x.save();
  s.check_replay();
  EXPECT_EQ(through_a_ledger(s.log()), text_of(s.state()));
  std::map<place, int> times;
  for (auto& x : trainers)
    for (const auto& [where_learned, step] : x.learned()) ++times[where_learned];
  for (const auto& [id, of] : s.state().orders()) {
    EXPECT_TRUE(of.over());
    for (uint32_t group = 0; group < of.groups.size(); ++group) {
      bool committed = of.groups[group].state == group_state::committed;
      EXPECT_EQ((times[{id, group}]), committed ? 1 : 0) << id << " " << group;
      EXPECT_TRUE(committed || of.groups[group].state == group_state::dropped);
    }
  }
}

TEST(HandoffDrawn, EveryGroupIsLearnedFromOnceAfterAnyKill) {
  auto only = number_from("KERNELMILL_HANDOFF_SEED", 0);
  if (only != 0) return draw(only);
  auto runs = number_from("KERNELMILL_HANDOFF_RUNS", 40);
  for (uint64_t seed = 1; seed <= runs && !HasFailure(); ++seed) draw(seed);
}

} // namespace handoff_drawn_test
} // namespace kernelmill::handoff
