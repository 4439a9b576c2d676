#pragma once

// What a run in this process is made of; private to hosted_run.cpp, which runs it, and
// run_session.cpp, which makes it ready.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>

#include "actors/governance/governance.hpp"
#include "actors/lineage/store_sink.hpp"
#include "launch/node/control_socket.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/node/node_plan.hpp"
#include "launch/node/node_retrieval.hpp"
#include "launch/node/run_rights.hpp"
#include "launch/node/verified_kernels.hpp"
#include "launch/server/scripted/scripted_server.hpp"
#include "launch/server/trackers/hooks.hpp"
#include "launch/server/trackers/otlp.hpp"
#include "messages/base/json_value.hpp"
#include "storage/journal/run_journal.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

/// Hears of turns on the run actor's thread and is read by the waiting one.
class progress_board final : public run_listener {
public:
  void on_progress(const run_counters& counters) override {
    std::lock_guard guard{mutex_};
    counters_ = counters;
  }

  bool lets_groups_begin() const override { return !held; }

  std::atomic<bool> held = false;

  run_counters counters() const {
    std::lock_guard guard{mutex_};
    return counters_;
  }

private:
  mutable std::mutex mutex_;
  run_counters counters_;
};

/// In the order in which it is made; it outlives the actors.
struct hosted_run::state {
  run_options options;
  chosen_backend backend;
  std::vector<std::shared_ptr<const task>> tasks;
  run_plan plan;
  std::shared_ptr<const episode_settings> settings;
  governance_config governance;
  licence_table licences;
  run_rights rights;
  policy_config policy;
  node_retrieval retrieval;
  std::unique_ptr<scripted_server> server;
  run_directory directory;
  std::shared_ptr<store> records;
  std::shared_ptr<artifact_store> artifacts;
  std::shared_ptr<run_journal> journal;
  std::shared_ptr<trackers::run_hooks> hooks;   ///< null: no hooks
  std::shared_ptr<trackers::run_traces> traces; ///< null: no collector
  std::shared_ptr<verified_kernels> verified;   ///< null: they become no examples
  std::shared_ptr<store_sink> sink;
  std::shared_ptr<progress_board> board = std::make_shared<progress_board>();
  logger log;

  caf::actor_system* system = nullptr;
  cluster_actor cluster;
  policy_client_actor policy_asked;
  run_actor run;
  monitor_actor monitor;
  std::vector<caf::actor> actors;
  std::unique_ptr<control_socket> control;
  std::atomic<bool> paused = false;
  std::future<expected<Message<wire::RunSummary>>> summary;
  std::chrono::steady_clock::time_point started;

  expected<void> prepare(const chosen_backend& chosen);
  expected<void> start_policy_server();
  expected<void> take_up_rights();
  nlohmann::ordered_json retrieval_facts(const nlohmann::ordered_json& fork) const;
  expected<void> open_log();
  expected<void> take_up_records();
  expected<bool> take_up_fork();
  expected<void> follow_verified(bool take_up);
  expected<void> start_traces();
  nlohmann::ordered_json fingerprint(const execution_facts& facts) const;
  expected<void> record_session(const execution_facts& facts) const;
  expected<void> record_budget() const;
  std::shared_ptr<record_sink> make_sink();
  void spawn_services(episode_services& services, const policy_client_actor& attached);
  Message<wire::Snapshot> introspection() const;
  void begin_run();
  void pause(bool on);
  expected<void> obey(const std::string& verb);
  void watch_nodes(const std::vector<status_actor>& others);
  progress read_progress() const;

  template <class Handle>
  Handle keep(Handle handle) {
    actors.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  void watch(const status_actor& actor);
};

} // namespace kernelmill
