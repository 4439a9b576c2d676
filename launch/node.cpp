#include "launch/node.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/caf_error.hpp"
#include "actors/cluster/cluster.hpp"
#include "actors/compiler/compiler.hpp"
#include "actors/governance/governance.hpp"
#include "actors/gpu_runner/gpu_runner.hpp"
#include "actors/lineage/record_sinks.hpp"
#include "actors/monitor/monitor.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/policy_client/scripted_server.hpp"
#include "actors/profiler/profiler.hpp"
#include "actors/retriever/indexed_retriever.hpp"
#include "actors/retriever/no_retriever.hpp"
#include "launch/backend.hpp"
#include "launch/config/load.hpp"
#include "launch/control_socket.hpp"
#include "launch/node_plan.hpp"
#include "launch/node_retrieval.hpp"
#include "launch/python.hpp"
#include "launch/slots.hpp"
#include "messages/json.hpp"
#include "storage/run_directory.hpp"
#include "storage/run_journal.hpp"

namespace kernelmill {

using namespace std::chrono_literals;

namespace {

struct node_config : caf::actor_system_config {
  node_config() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-throughput", size_t{100});
  }
};

/// Everything of a run that outlives its actors, in the order in which it is made.
struct node {
  run_plan plan;
  std::shared_ptr<const episode_settings> settings;
  governance_config governance;
  policy_config policy;
  run_directory directory;
  std::shared_ptr<store> records;
  std::shared_ptr<artifact_store> artifacts;
  std::shared_ptr<run_journal> journal;
  node_slots slots;
  node_retrieval retrieval;
  std::unique_ptr<scripted_server> server;
};

/// Hears of episodes on the run actor's thread and is read by the waiting one.
class progress_board final : public run_listener {
public:
  void on_episode(wire::EpisodeOutcome::Reader, const run_counters& counters) override {
    std::lock_guard guard{mutex_};
    counters_ = counters;
  }

  run_counters counters() const {
    std::lock_guard guard{mutex_};
    return counters_;
  }

private:
  mutable std::mutex mutex_;
  run_counters counters_;
};

// -- preparing
// --------------------------------------------------------------------------------------

nlohmann::ordered_json layers_json(const std::vector<sandbox_layer>& layers) {
  auto result = nlohmann::ordered_json::array();
  static constexpr const char* states[] = {"active", "weaker", "missing"};
  for (auto& x : layers)
    result.push_back(
        {{"name", x.name}, {"state", states[static_cast<int>(x.state)]}, {"detail", x.detail}});
  return result;
}

nlohmann::ordered_json manifest_of(const node& x) {
  auto tasks = nlohmann::ordered_json::array();
  for (auto& what : x.plan.groups)
    if (tasks.empty() || tasks.back()["id"] != what->id)
      tasks.push_back({{"id", what->id}, {"digest", what->digest}});
  return {{"config_digest", x.plan.config_digest},
          {"toolchain", x.slots.toolchain->identity()},
          {"slots", x.slots.referee_names},
          {"sandbox", layers_json(x.slots.layers)},
          {"policy", {{"base_url", x.policy.base_url}, {"model", x.policy.model}}},
          {"tasks", tasks}};
}

expected<void> prepare_directory(node& x, const run_options& options) {
  auto& config = options.config;
  expected<run_directory> directory;
  if (options.resume) {
    directory = open_run(options.directory);
  } else {
    auto resolved = nlohmann::ordered_json::parse(options.config_json, nullptr, false);
    directory = create_run({options.directory, config.run.name, config.storage.store}, resolved,
                           manifest_of(x));
  }
  if (!directory) return tl::unexpected<error>{directory.error()};
  x.directory = std::move(*directory);
  x.plan.name = x.directory.name;
  x.plan.directory = x.directory.path;
  store_options storage;
  storage.directory = x.directory.store;
  storage.durable = config.storage.durable;
  auto records = store::open(storage);
  if (!records) return tl::unexpected<error>{records.error()};
  x.records = std::make_shared<store>(std::move(*records));
  x.artifacts = std::make_shared<artifact_store>(x.directory.artifacts);
  if (options.resume) {
    x.artifacts->remove_leftovers();
    // A killed node may have left half a line; what is committed is the truth.
    if (auto ok = rebuild_projections(*x.records, *x.artifacts, x.directory); !ok)
      return tl::unexpected<error>{ok.error()};
  }
  auto journal = run_journal::open(x.directory);
  if (!journal) return tl::unexpected<error>{journal.error()};
  x.journal = std::make_shared<run_journal>(std::move(*journal));
  return {};
}

expected<void> start_policy_server(node& x, const policy_section& config) {
  if (config.kind != "scripted") return validate(x.policy);
  auto script = load_policy_script(config.script);
  if (!script) return tl::unexpected<error>{script.error()};
  x.policy.model = script->model;
  x.policy.kind = script->kind;
  auto server = scripted_server::start(std::move(*script));
  if (!server) return tl::unexpected<error>{server.error()};
  x.server = std::move(*server);
  x.policy.base_url = x.server->base_url();
  return validate(x.policy);
}

template <class T>
expected<void> take(T& into, expected<T> from) {
  if (!from) return tl::unexpected<error>{from.error()};
  into = std::move(*from);
  return {};
}

expected<void> prepare(node& x, const run_options& options) {
  auto& config = options.config;
  std::vector<std::shared_ptr<const task>> tasks;
  chosen_backend backend;
  if (auto ok = take(backend, choose_backend(config.evaluation.backend)); !ok) return ok;
  if (auto ok = take(tasks, load_tasks(config, backend)); !ok) return ok;
  if (any_torch(tasks)) {
    found_python python;
    if (auto ok = take(python, find_python(config.evaluation.python)); !ok) return ok;
    backend.python = python.path;
  }
  x.plan = plan_of(config, tasks);
  x.plan.config_digest = config_digest(config);
  x.settings = settings_of(config, backend.name, options.resume);
  if (auto ok = take(x.plan.advantages, advantage_of(config.advantage)); !ok) return ok;
  if (auto ok = take(x.governance, governance_of(config)); !ok) return ok;
  if (auto ok = take(x.policy, policy_of(config)); !ok) return ok;
  if (auto ok = start_policy_server(x, config.policy); !ok) return ok;
  if (auto ok = take(x.retrieval, open_retrieval(config.retrieval, tasks)); !ok) return ok;
  std::vector<std::string> folders;
  for (const auto& one : tasks) folders.push_back(one->directory);
  if (auto ok = take(x.slots, start_slots(config, backend, folders)); !ok) return ok;
  x.plan.sandbox_complete =
      std::none_of(x.slots.layers.begin(), x.slots.layers.end(),
                   [](auto& layer) { return layer.state == layer_state::missing; });
  return prepare_directory(x, options);
}

// -- running
// ----------------------------------------------------------------------------------------

struct node_actors {
  cluster_actor cluster;
  run_actor run;
  monitor_actor monitor;
  std::vector<caf::actor> all;
};

std::shared_ptr<record_sink> make_sink(node& x) {
  auto sink = std::make_shared<store_sink>(x.records, x.artifacts);
  sink->on_fresh(
      [records = x.records, artifacts = x.artifacts, journal = x.journal,
       feed = x.retrieval.live ? x.retrieval.feed : nullptr](wire::Record::Reader record) {
        // The journal is a projection: what it misses, resume writes again.
        (void)journal->follow(*records, *artifacts, record);
        if (feed) feed_verified(*feed, *artifacts, record);
      });
  return sink;
}

node_actors spawn_actors(caf::actor_system& system, node& x, std::shared_ptr<progress_board> board,
                         const run_options& options) {
  node_actors result;
  auto keep = [&](auto handle) {
    result.all.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  };
  auto& slots = x.slots;
  const auto& paces = *x.settings;
  auto longest = std::max(paces.build_deadline, paces.torch_build_deadline) +
                 std::max(paces.evaluate_deadline, paces.torch_evaluate_deadline) + 2min;
  result.cluster = keep(system.spawn(leasing_cluster, lease_policy{longest, 3, false}));
  result.monitor = keep(system.spawn(gathering_monitor));
  auto watch = [&](const status_actor& who) {
    caf::anon_send(result.monitor, atom::observe_v, who);
  };

  auto services = std::make_shared<episode_services>();
  services->policy = keep(system.spawn(http_policy_client, x.policy));
  services->retriever =
      keep(x.retrieval.index ? spawn_indexed_retriever(system, x.retrieval.index, x.retrieval.feed)
                             : system.spawn(no_retriever));
  services->compiler = result.cluster;
  services->runner = result.cluster;
  services->profiler = result.cluster;
  services->governance = keep(system.spawn(rule_governance, x.governance));
  services->lineage = keep(spawn_group_commit_lineage(system, make_sink(x), lineage_config{}));
  services->prompts = std::make_shared<prompt_book>();

  result.run = keep(system.spawn(batch_run, x.plan, x.settings,
                                 std::shared_ptr<const episode_services>{services}, board));
  watch(result.run);
  watch(result.cluster);
  watch(services->policy);
  watch(services->retriever);
  watch(services->governance);
  watch(services->lineage);
  for (uint32_t i = 0; i < slots.compile_slots; ++i) {
    auto compiler =
        keep(spawn_sandboxed_compiler(system, slots.toolchain, "compile" + std::to_string(i)));
    watch(compiler);
    caf::anon_send(result.cluster, atom::lease_v, compiler, uint32_t{1});
  }
  for (size_t i = 0; i < slots.referees.size(); ++i) {
    auto runner = keep(spawn_referee_runner(system, slots.referees[i], slots.referee_names[i],
                                            options.on_quarantine));
    auto profiler = keep(system.spawn(counting_profiler, runner));
    watch(runner);
    watch(profiler);
    // Two credits: the next job is already there when a candidate is done.
    caf::anon_send(result.cluster, atom::lease_v, runner, uint32_t{2});
    caf::anon_send(result.cluster, atom::lease_v, profiler, uint32_t{1});
  }
  return result;
}

uint64_t number_of(wire::Snapshot::Reader snapshot, const char* name) {
  for (auto number : snapshot.getNumbers())
    if (number.getName() == name) return static_cast<uint64_t>(number.getValue());
  return 0;
}

void report(caf::scoped_actor& self, const node& x, const node_actors& actors,
            const progress_board& board, const run_options& options,
            std::chrono::steady_clock::time_point started) {
  if (!options.on_progress) return;
  auto counters = board.counters();
  progress now;
  now.episodes_total = static_cast<uint32_t>(x.plan.groups.size()) * x.plan.group_size;
  now.episodes_done = counters.ended;
  now.episodes_live = counters.live;
  now.turns = counters.turns;
  now.accepted = counters.accepted;
  now.rejected = counters.rejected;
  now.infrastructure = counters.infrastructure;
  now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  self->request(actors.cluster, 1s, atom::status_v)
      .receive(
          [&](const Message<wire::Snapshot>& snapshot) {
            auto view = snapshot.open();
            now.builds = number_of(*view, "builds_done");
            now.evaluations = number_of(*view, "evaluations_done");
          },
          [](caf::error&) {});
  options.on_progress(now);
}

using summary_result = expected<Message<wire::RunSummary>>;

summary_result wait_for_end(caf::actor_system& system, const node& x, const node_actors& actors,
                            const progress_board& board, const run_options& options,
                            std::stop_token stop) {
  auto ended = std::make_shared<std::promise<summary_result>>();
  auto future = ended->get_future();
  // A year: the run has its own deadlines, and this request has none to add.
  system.spawn([ended, run = actors.run](caf::event_based_actor* self) {
    self->request(run, std::chrono::minutes{60 * 24 * 365}, atom::start_v)
        .then([ended](const Message<wire::RunSummary>& summary) { ended->set_value(summary); },
              [ended](caf::error& why) { ended->set_value(tl::unexpected<error>{from_caf(why)}); });
  });
  caf::scoped_actor self{system};
  auto started = std::chrono::steady_clock::now();
  bool cancelled = false;
  while (future.wait_for(200ms) != std::future_status::ready) {
    if (stop.stop_requested() && !cancelled) {
      cancelled = true;
      self->send(actors.run, atom::cancel_v);
    }
    report(self, x, actors, board, options, started);
  }
  report(self, x, actors, board, options, started);
  return future.get();
}

std::string introspection(caf::actor_system& system, const monitor_actor& monitor) {
  caf::scoped_actor self{system};
  std::string text;
  self->request(monitor, 5s, atom::status_v)
      .receive([&](const Message<wire::Snapshot>& x) { text = to_json(*x.open()).dump() + "\n"; },
               [&](caf::error& why) {
                 text = nlohmann::json{{"error", system.render(why)}}.dump() + "\n";
               });
  return text;
}

} // namespace

expected<Message<wire::RunSummary>> run_node(const run_options& options, std::stop_token stop) {
  node x;
  if (auto ok = prepare(x, options); !ok) return tl::unexpected<error>{ok.error()};

  node_config config;
  caf::actor_system system{config};
  auto board = std::make_shared<progress_board>();
  auto actors = spawn_actors(system, x, board, options);
  auto control = control_socket::open(x.directory.control_socket(),
                                      [&] { return introspection(system, actors.monitor); });
  // Without the socket `ps` is blind, and the run goes on.
  auto result = wait_for_end(system, x, actors, *board, options, stop);
  if (control) control->reset();
  for (auto& who : actors.all) caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  actors = {};
  return result;
}

} // namespace kernelmill
