#pragma once

// The HANDOFF with runs that do what the test says.

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "actors/caf_error.hpp"
#include "actors/handoff/handoff.hpp"
#include "folder.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::handoff {

using json = nlohmann::json;

struct config : caf::actor_system_config {
  config() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    teach_errors(*this);
  }
};

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
    auto known = read_lease_table(*settings.ledger);
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

  /// Asks again until a count is as expected: a worker thread reads groups.
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

} // namespace kernelmill::handoff
