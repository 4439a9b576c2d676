// The HANDOFF with runs that do what the test says.

#include "actors/handoff/handoff.hpp"

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/caf_error.hpp"
#include "folder.hpp"

namespace kernelmill::handoff {
namespace {

using json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct config : caf::actor_system_config {
  config() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    teach_errors(*this);
  }
};

// What CAF prints of an error by itself is its code and its category.
TEST(errors_between_actors, are_shown_in_words) {
  config settings;
  caf::actor_system system{settings};
  error said{fault_class::infrastructure, "disk_full", "failed to write x", "free some space"};
  EXPECT_EQ(system.render(to_caf(said)), render(said));
  auto back = from_caf(to_caf(said));
  EXPECT_EQ(back.category, "disk_full");
  EXPECT_EQ(back.hint, "free some space");
  EXPECT_EQ(from_caf(caf::sec::request_receiver_down).category, "actor_lost");
}

class fake_host final : public rollout_host {
public:
  expected<rollout_plan> plan(const std::string&, const std::string& what) override {
    auto x = json::parse(what);
    if (x.contains("wrong")) return configuration_error("config_unknown_key", "no such key");
    return rollout_plan{what, x.value("groups", 1u), 2};
  }
  expected<void> submit(const std::string& run, const std::string&) override {
    std::lock_guard guard{mutex};
    ++submits[run];
    if (std::exchange(fault, fault_class::none) != fault_class::none)
      return tl::unexpected<error>{{fault_class::infrastructure, "disk_full", "no space", ""}};
    if (refuses) return configuration_error("run_exists", "another run has this name");
    standings[run] = {true, true, "", false, {}};
    return {};
  }
  expected<void> cancel(const std::string& run) override {
    std::lock_guard guard{mutex};
    cancelled.insert(run);
    return {};
  }
  void hold(const std::string& run, bool on) override {
    std::lock_guard guard{mutex};
    holds.push_back(run + (on ? " held" : " let go"));
  }
  expected<run_standing> look(const std::string& run, const std::vector<uint32_t>& open) override {
    std::lock_guard guard{mutex};
    auto result = standings[run];
    std::erase_if(result.groups,
                  [&](uint32_t x) { return std::find(open.begin(), open.end(), x) == open.end(); });
    if (store_lost) return configuration_error("not_found", "there is no store");
    return result;
  }
  expected<std::vector<loaded_server>> load_weights(const weights_wish& x) override {
    if (x.path == "/gone") return configuration_error("weights_refused", "no such folder");
    std::vector<loaded_server> result;
    for (const auto& one : x.servers)
      result.push_back({json::parse(one)["base_url"].get<std::string>(), "sglang", x.version});
    return result;
  }
  expected<group_rows> read(const std::string& run, uint32_t group, const std::string&) override {
    std::lock_guard guard{mutex};
    if (damaged.contains(group))
      return infrastructure_error("store_damaged", "a record does not match its checksum");
    return group_rows{2, {"v1"}, "", "[\"" + group_name(run, group) + "\"]"};
  }

  std::mutex mutex;
  std::map<std::string, run_standing> standings;
  std::map<std::string, int> submits;
  std::set<std::string> cancelled;
  std::vector<std::string> holds;
  std::set<uint32_t> damaged;
  bool store_lost = false;
  fault_class fault = fault_class::none;
  bool refuses = false;
};

class Handoff : public ::testing::Test {
protected:
  void SetUp() override { start(); }
  void TearDown() override { end(); }

  void start() {
    auto ledger = handoff_ledger::open({.directory = where_.path, .durable = false});
    ASSERT_TRUE(ledger) << render(ledger.error());
    handoff_settings settings;
    settings.host = host_;
    settings.ledger = std::make_shared<handoff_ledger>(std::move(*ledger));
    auto known = read_book(*settings.ledger);
    ASSERT_TRUE(known) << render(known.error());
    settings.known = std::move(*known);
    settings.now = [this] { return clock_.load(); };
    who_ = spawn_handoff(system_, std::move(settings));
    caf::anon_send(who_, atom::start_v);
  }

  void end() {
    caf::anon_send_exit(who_, caf::exit_reason::kill);
    caf::scoped_actor self{system_};
    self->wait_for(who_);
    who_ = nullptr;
  }

  template <class What>
  std::future<expected<std::string>> send(What what, uint64_t waiter = 0) {
    auto place = std::make_shared<std::promise<expected<std::string>>>();
    auto x = std::make_shared<request>();
    x->what = std::move(what);
    x->client = client_;
    x->waiter = waiter;
    x->answer = [place](expected<std::string> text) { place->set_value(std::move(text)); };
    caf::anon_send(who_, atom::query_v, std::move(x));
    return place->get_future();
  }

  template <class What>
  json ask(What what) {
    auto answer = send(std::move(what)).get();
    if (!answer) return {{"category", answer.error().category}};
    return json::parse(*answer);
  }

  json order(const std::string& id, uint32_t groups, uint32_t max_ready = 0, int64_t seconds = 0) {
    order_request x;
    x.what.id = id;
    x.what.client = client_;
    x.what.digest = "d";
    x.what.form = "rl";
    x.what.max_ready = max_ready;
    x.config = json{{"groups", groups}}.dump();
    x.seconds = seconds;
    return ask(x);
  }

  static batch_request batch(const std::string& id, uint32_t groups, int64_t wait_ms = 0) {
    return {{id, "trainer", "", 0, groups, 1000}, std::chrono::milliseconds{wait_ms}};
  }

  void finish(const std::string& id, uint32_t group) {
    caf::anon_send(who_, atom::finished_v, id, group);
  }

  /// Asks again until a count is as expected: groups are read by a hand.
  json until(const std::string& id, const char* state, uint32_t count) {
    for (;;) {
      auto x = ask(look_request{id});
      if (x["groups"][state] == count) return x;
      std::this_thread::yield();
    }
  }

  config config_;
  caf::actor_system system_{config_};
  folder where_;
  std::shared_ptr<fake_host> host_ = std::make_shared<fake_host>();
  std::atomic<int64_t> clock_ = 1;
  handoff_actor who_;
  std::string client_; ///< who asks
};

TEST_F(Handoff, GivesABatchToWhoeverWaitedForIt) {
  EXPECT_EQ(order("run", 2)["requested"], 2);
  auto waiting = send(batch("run", 2, 60'000));
  finish("run", 1);
  finish("run", 0);
  auto got = json::parse(*waiting.get());
  EXPECT_EQ(got["groups"].size(), 2u);
  EXPECT_EQ(got["groups"][0]["rows"][0], got["groups"][0]["id"]);
  EXPECT_EQ(got["groups"][0]["min_version"], "v1");
  EXPECT_EQ(ask(ack_request{1, {"run/g1"}, 3})["left"], 1);
  EXPECT_EQ(ask(ack_request{1, {"other/g1"}, 3})["category"], "bad_request");
  EXPECT_EQ(ask(commit_command{"trainer", 0, 3})["committed_step"], 3);
}

TEST_F(Handoff, AnswersNothingWhenTheTimeIsOver) {
  order("run", 2);
  auto waiting = send(batch("run", 1, 500));
  ask(look_request{"run"}); // it waits by now
  clock_ += 500;
  caf::anon_send(who_, atom::tick_v);
  auto got = json::parse(*waiting.get());
  EXPECT_TRUE(got["lease"].is_null());
  EXPECT_FALSE(got["over"]);
}

TEST_F(Handoff, AClientThatLeavesTakesNoLease) {
  order("run", 1);
  auto waiting = send(batch("run", 1, 60'000), 7);
  caf::anon_send(who_, atom::drop_v, uint64_t{7});
  finish("run", 0);
  EXPECT_EQ(until("run", "ready", 1)["groups"]["leased"], 0);
}

TEST_F(Handoff, KnowsAllAfterAnEnd) {
  order("run", 3);
  finish("run", 0);
  until("run", "ready", 1);
  EXPECT_EQ(ask(batch("run", 1))["lease"], 1);
  host_->standings["run"].groups = {0, 2}; // one was committed, and nobody heard of it
  host_->standings["run"].live = false;    // the machine went down
  end();
  start();
  auto now = until("run", "ready", 1);
  EXPECT_EQ(now["groups"]["leased"], 1);
  while (host_->submits["run"] < 2) ask(look_request{"run"}); // the run is begun again
}

TEST_F(Handoff, HoldsARunWhoseGroupsNobodyTakes) {
  order("run", 6, 4);
  for (uint32_t i = 0; i < 4; ++i) finish("run", i);
  EXPECT_EQ(until("run", "ready", 4)["state"], "held");
  ask(batch("run", 1));
  EXPECT_EQ(ask(look_request{"run"})["state"], "held");
  ask(batch("run", 1));
  EXPECT_EQ(ask(look_request{"run"})["state"], "running");
  EXPECT_THAT(host_->holds, ElementsAre("run held", "run let go"));
  EXPECT_EQ(ask(batch("run", 5))["category"], "bad_request");
}

TEST_F(Handoff, TriesAgainWhereAMachineFailed) {
  host_->fault = fault_class::infrastructure;
  auto first = order("run", 1);
  EXPECT_EQ(first["state"], "waiting");
  EXPECT_EQ(first["trouble"], "no space");
  clock_ += 2000;
  caf::anon_send(who_, atom::tick_v);
  while (ask(look_request{"run"})["state"] != "running") std::this_thread::yield();
}

TEST_F(Handoff, AnOrderOutlivesAPolicyServerThatIsAway) {
  constexpr int64_t seconds = 1'000'000'000;
  order("run", 1, 0, seconds);
  for (int i = 1; i <= 12; ++i) { // more often than a machine's fault is put up with
    {
      std::lock_guard guard{host_->mutex};
      host_->standings["run"] = {true, false, "failed", true, {}, "nobody answers", true};
    }
    caf::anon_send(who_, atom::finished_v, std::string{"run"});
    json now;
    do now = ask(look_request{"run"});
    while (now["state"] != "waiting" || now["trouble"].is_null());
    EXPECT_THAT(now["trouble"].get<std::string>(), HasSubstr("nobody answers"));
    do {
      clock_ += 1000;
      caf::anon_send(who_, atom::tick_v);
      now = ask(look_request{"run"});
    } while (now["state"] != "running");
    EXPECT_THAT(now["trouble"].get<std::string>(), HasSubstr("nobody answers"))
        << "it says so until a group is there";
    std::lock_guard guard{host_->mutex};
    EXPECT_EQ(host_->submits["run"], i + 1);
  }
  finish("run", 0);
  EXPECT_EQ(until("run", "ready", 1)["trouble"], nullptr);
}

TEST_F(Handoff, TheDeadlineEndsAnOrderWhosePolicyServerStaysAway) {
  order("run", 1, 0, 10);
  {
    std::lock_guard guard{host_->mutex};
    host_->standings["run"] = {true, false, "failed", true, {}, "nobody answers", true};
  }
  caf::anon_send(who_, atom::finished_v, std::string{"run"});
  clock_ += 10'000;
  caf::anon_send(who_, atom::tick_v);
  EXPECT_EQ(until("run", "dropped", 1)["dropped"]["deadline"], 1);
}

TEST_F(Handoff, AMachineThatFailsAgainAndAgainIsGivenUp) {
  order("run", 1);
  json now;
  do {
    {
      std::lock_guard guard{host_->mutex};
      host_->standings["run"] = {true, false, "failed", true, {}, "no space", false};
    }
    caf::anon_send(who_, atom::finished_v, std::string{"run"});
    clock_ += 60'000;
    caf::anon_send(who_, atom::tick_v);
    now = ask(look_request{"run"});
  } while (now["state"] != "settled");
  EXPECT_EQ(now["dropped"]["incomplete"], 1);
}

TEST_F(Handoff, AnOrderThatCannotRunIsNone) {
  host_->refuses = true;
  EXPECT_EQ(order("run", 1)["category"], "run_exists");
  EXPECT_EQ(ask(look_request{"run"})["category"], "not_found");
  host_->refuses = false;
  EXPECT_EQ(order("run", 1)["state"], "running");
  order_request wrong;
  wrong.what.id = "wrong";
  wrong.config = R"({"wrong": 1})";
  EXPECT_EQ(ask(wrong)["category"], "config_unknown_key");
}

TEST_F(Handoff, ARunThatEndsDropsWhatItOwes) {
  order("run", 2);
  finish("run", 0);
  until("run", "ready", 1);
  host_->standings["run"] = {true, false, "finished", false, {}};
  caf::anon_send(who_, atom::finished_v, std::string{"run"});
  EXPECT_EQ(until("run", "dropped", 1)["dropped"]["incomplete"], 1);
}

TEST_F(Handoff, ADeadlineEndsTheRunAndKeepsWhatIsReady) {
  order("run", 3, 0, 10);
  finish("run", 0);
  until("run", "ready", 1);
  clock_ += 10'000;
  caf::anon_send(who_, atom::tick_v);
  EXPECT_EQ(until("run", "dropped", 2)["dropped"]["deadline"], 2);
  EXPECT_EQ(ask(batch("run", 4))["groups"].size(), 1u);
  while (host_->cancelled.empty()) ask(look_request{"run"});
}

TEST_F(Handoff, AGroupThatIsLostIsDroppedAfterABound) {
  order("run", 2);
  {
    std::lock_guard guard{host_->mutex};
    host_->damaged = {1};
    host_->standings["run"].groups = {0, 1};
  }
  finish("run", 1);
  for (json now; now["dropped"]["unreadable"] != 1; now = ask(look_request{"run"})) {
    clock_ += 60'000;
    caf::anon_send(who_, atom::tick_v);
  }
  EXPECT_EQ(ask(look_request{"run"})["groups"]["ready"], 1);
}

TEST_F(Handoff, AnOrderWhoseStoreIsLostEnds) {
  order("run", 3);
  {
    std::lock_guard guard{host_->mutex};
    host_->store_lost = true;
  }
  caf::anon_send(who_, atom::finished_v, std::string{"run"});
  json now;
  do {
    clock_ += 60'000;
    caf::anon_send(who_, atom::tick_v);
    now = ask(look_request{"run"});
  } while (!now["over"]);
  EXPECT_EQ(now["dropped"]["unreadable"], 3);
  EXPECT_EQ(now["trouble"], "there is no store");
}

TEST_F(Handoff, AReadyGroupThatIsLostIsDroppedWhenItIsGiven) {
  order("run", 2);
  finish("run", 0);
  finish("run", 1);
  until("run", "ready", 2);
  {
    std::lock_guard guard{host_->mutex};
    host_->damaged = {0};
  }
  auto first = send(batch("run", 2)).get();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().cls, fault_class::infrastructure); // so that clients ask again
  auto second = json::parse(*send(batch("run", 2)).get());
  ASSERT_EQ(second["groups"].size(), 1u);
  EXPECT_EQ(second["groups"][0]["id"], "run/g1");
  EXPECT_EQ(ask(look_request{"run"})["dropped"]["unreadable"], 1);
}

TEST_F(Handoff, HasTheServersOfOrdersLoadWeights) {
  EXPECT_EQ(ask(weights_request{"v1"})["servers"].size(), 0u);
  EXPECT_EQ(ask(weights_request{"v2", {"", "/w", "", {}}})["category"], "weights_refused");
  order_request x;
  x.what.id = "run";
  x.what.form = "rl";
  x.config = R"({"groups": 1, "policy": {"kind": "sglang", "base_url": "http://a/v1"}})";
  ask(x);
  auto loaded = ask(weights_request{"v2", {"", "/w", "", {}}});
  EXPECT_EQ(loaded["ordinal"], 2);
  EXPECT_EQ(loaded["servers"][0]["base_url"], "http://a/v1");
  EXPECT_EQ(loaded["servers"][0]["weight_version"], "v2");
  EXPECT_EQ(ask(weights_request{"v2", {"", "/gone", "", {}}})["category"], "weights_refused");
}

TEST_F(Handoff, AClientFindsItsOwnOrdersAlone) {
  client_ = "a";
  order("run", 2);
  finish("run", 0);
  until("run", "ready", 1);
  auto lease = ask(batch("run", 1))["lease"].get<uint64_t>();
  client_ = "b";
  EXPECT_EQ(ask(look_request{"run"})["category"], "not_found");
  EXPECT_EQ(ask(look_request{})["rollouts"].size(), 0u);
  EXPECT_EQ(ask(cancel_request{"run"})["category"], "not_found");
  EXPECT_EQ(ask(batch("run", 1))["category"], "not_found");
  EXPECT_EQ(ask(ack_request{lease, {}, 1})["category"], "not_found");
  EXPECT_EQ(order("run", 2)["category"], "handoff_conflict");
  end();
  start(); // the log holds whose they are
  EXPECT_EQ(ask(look_request{"run"})["category"], "not_found");
  client_ = "";
  EXPECT_EQ(ask(look_request{})["rollouts"].size(), 1u);
  client_ = "a";
  EXPECT_EQ(ask(ack_request{lease, {}, 1})["left"], 0);
}

TEST_F(Handoff, WeightsGoToAClientsOwnServers) {
  order_request x;
  x.what.id = "run";
  x.what.client = "a";
  x.what.form = "rl";
  x.config = R"({"groups": 1, "policy": {"kind": "vllm", "base_url": "http://a/v1"}})";
  ask(x);
  client_ = "b";
  EXPECT_EQ(ask(weights_request{"v2", {"", "/w", "", {}}})["category"], "weights_refused");
  client_ = "a";
  EXPECT_EQ(ask(weights_request{"v2", {"", "/w", "", {}}})["servers"].size(), 1u);
}

TEST_F(Handoff, GoingBackFencesWhoWaits) {
  order("run", 1);
  auto waiting = send(batch("run", 1, 60'000));
  EXPECT_EQ(ask(rollback_command{"trainer", -1})["generation"], 1);
  EXPECT_EQ(waiting.get().error().category, "consumer_fenced");
}

} // namespace
} // namespace kernelmill::handoff
