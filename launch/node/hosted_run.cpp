#include "launch/node/hosted_run.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <utility>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/caf_error.hpp"
#include "actors/governance/governance.hpp"
#include "actors/lineage/store_sink.hpp"
#include "actors/monitor/monitor.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/retriever/indexed_retriever.hpp"
#include "actors/retriever/no_retriever.hpp"
#include "actors/snapshots.hpp"
#include "launch/config/load.hpp"
#include "launch/machine/fingerprint.hpp"
#include "launch/node/control_socket.hpp"
#include "launch/node/node_plan.hpp"
#include "launch/node/node_retrieval.hpp"
#include "launch/node/run_manifest.hpp"
#include "launch/node/run_rights.hpp"
#include "launch/node/stations.hpp"
#include "launch/scripted_server/scripted_server.hpp"
#include "launch/trackers/hooks.hpp"
#include "launch/trackers/otlp.hpp"
#include "messages/base/clock.hpp"
#include "storage/fork.hpp"
#include "storage/run_directory.hpp"
#include "storage/run_journal.hpp"

namespace kernelmill {

using namespace std::chrono_literals;

namespace {

constexpr size_t recent_text_bytes = size_t{16} << 20;

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

} // namespace

/// In the order in which it is made; it outlives the actors.
struct hosted_run::state {
  run_options options;
  chosen_backend backend;
  std::vector<std::shared_ptr<const task>> tasks;
  run_plan plan;
  std::shared_ptr<const episode_settings> settings;
  governance_config governance;
  licence_book licences;
  run_rights rights;
  policy_config policy;
  node_retrieval retrieval;
  std::unique_ptr<scripted_server> server;
  run_directory directory;
  std::shared_ptr<store> records;
  std::shared_ptr<artifact_store> artifacts;
  std::shared_ptr<run_journal> journal;
  std::shared_ptr<trackers::run_hooks> hooks;   ///< null: nobody is told
  std::shared_ptr<trackers::run_traces> traces; ///< null: no collector
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
  std::future<expected<Message<wire::RunSummary>>> summary;
  std::chrono::steady_clock::time_point started;

  expected<void> prepare(const chosen_backend& backend);
  expected<void> start_policy_server();
  expected<void> take_up_rights();
  nlohmann::ordered_json retrieval_facts(const nlohmann::ordered_json& fork) const;
  expected<void> open_log();
  expected<void> take_up_records();
  expected<bool> take_up_fork();
  expected<void> start_traces();
  nlohmann::ordered_json fingerprint(const execution_facts& facts) const;
  expected<void> note_opening(const execution_facts& facts) const;
  std::shared_ptr<record_sink> make_sink();
  void spawn_services(episode_services& services, const policy_client_actor& attached);
  Message<wire::Snapshot> introspection() const;
  void begin_run();
  void watch_nodes(const std::vector<status_actor>& others);
  progress read_progress() const;

  template <class Handle>
  Handle keep(Handle handle) {
    actors.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  void watch(const status_actor& who) { caf::anon_send(monitor, atom::observe_v, who); }
};

// -- preparing
// --------------------------------------------------------------------------------------

std::chrono::milliseconds longest_lease(const run_config& config) {
  using std::chrono::milliseconds;
  return milliseconds{std::max(config.compile.deadline_ms, config.compile.torch_deadline_ms)} +
         milliseconds{
             std::max(config.evaluation.deadline_ms, config.evaluation.torch_deadline_ms)} +
         2min;
}

expected<void> hosted_run::state::start_policy_server() {
  const auto& config = options.config.policy;
  if (config.kind == "attached") return {}; // the head knows its servers
  if (config.kind != "scripted") return validate(policy);
  auto script = load_policy_script(config.script);
  KM_TRY(script);
  policy.model = script->model;
  policy.kind = script->kind;
  auto made = scripted_server::start(std::move(*script));
  KM_TRY(made);
  server = std::move(*made);
  policy.base_url = server->base_url();
  return validate(policy);
}

template <class T>
expected<void> take(T& into, expected<T> from) {
  KM_TRY(from);
  into = std::move(*from);
  return {};
}

// Before anything is measured: what may not be evaluated does not start.
expected<void> hosted_run::state::take_up_rights() {
  const auto& terms = options.config.run.accepted_terms;
  std::set<std::string> accepted{terms.begin(), terms.end()};
  KM_TRY(licences.check_terms(accepted));
  std::vector<origin_facts> origins;
  for (const auto& one : tasks) origins.push_back(origin_of(*one));
  rights = rights_of(licences, origins, std::move(accepted));
  return may_run(rights);
}

// A fork's prompts hold what the retriever gave its origin.
nlohmann::ordered_json
hosted_run::state::retrieval_facts(const nlohmann::ordered_json& fork) const {
  const auto& config = options.config.retrieval;
  auto result = retrieval_json(licences, retrieval.index.get(), config.enabled && config.live);
  if (!fork.is_object()) return result;
  auto origin = read_json(fork.value("directory", std::string{}) + "/manifest.json");
  auto& of_origin = result["of_origin"];
  if (origin) of_origin = origin->value("retrieval", nlohmann::ordered_json());
  // Kernels that it showed while it went on may solve any of its tasks.
  if (of_origin.is_object())
    of_origin["tasks"] = origin->value("tasks", nlohmann::ordered_json::array());
  return result;
}

expected<void> hosted_run::state::prepare(const chosen_backend& backend) {
  auto& config = options.config;
  if (auto ok = take(tasks, load_tasks(config, backend)); !ok) return ok;
  plan = plan_of(config, tasks);
  plan.config_digest = config_digest(config);
  settings = settings_of(config, backend.name, options.resume || !options.fork_json.empty());
  if (auto ok = take(plan.advantages, advantage_of(config.advantage)); !ok) return ok;
  if (auto ok = take(governance, governance_of(config)); !ok) return ok;
  if (auto ok = take(policy, policy_of(config)); !ok) return ok;
  KM_TRY(trackers::run_hooks::check(config.hooks));
  if (auto ok = take(licences, installed_licences()); !ok) return ok;
  KM_TRY(take_up_rights());
  KM_TRY(trackers::run_traces::check(config.otlp));
  if (auto ok = start_policy_server(); !ok) return ok;
  return take(retrieval, open_retrieval(config.retrieval, tasks));
}

hosted_run::hosted_run(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

hosted_run::~hosted_run() {
  auto& x = *state_;
  x.control.reset();
  if (x.hooks) x.hooks->watch_nodes({}); // the actors that it asks may end
  for (auto& who : x.actors) caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  if (x.sink) x.sink->settle();   // whoever resumes the run reads its journal next
  if (x.hooks) x.hooks->finish(); // its troubles are logged
  if (x.traces) x.traces->finish();
  x.log.close();
}

expected<std::unique_ptr<hosted_run>> hosted_run::plan(run_options options,
                                                       const chosen_backend& backend) {
  auto x = std::make_unique<state>();
  x->options = std::move(options);
  x->backend = backend;
  KM_TRY(x->prepare(backend));
  return std::unique_ptr<hosted_run>{new hosted_run{std::move(x)}};
}

const std::string& hosted_run::name() const {
  return state_->options.config.run.name;
}

bool hosted_run::wants_python() const {
  return any_torch(state_->tasks);
}

std::vector<std::string> hosted_run::task_directories() const {
  std::vector<std::string> result;
  for (const auto& one : state_->tasks) result.push_back(one->directory);
  return result;
}

const logger& hosted_run::log() const {
  return state_->log;
}

// By format, so that a run that is resumed with another one has no file of both.
expected<void> hosted_run::state::open_log() {
  const auto& config = options.config.log;
  log_options wanted;
  wanted.level = parse_log_level(config.level).value_or(log_level::info);
  bool json = config.format == "json";
  wanted.format = json ? log_format::json : log_format::text;
  wanted.file = directory.logs() + (json ? "/run.jsonl" : "/run.log");
  wanted.file_bytes = config.file_bytes;
  wanted.files = config.files;
  wanted.show = options.on_warning;
  wanted.parent = options.log;
  if (auto ok = take(log, logger::open(std::move(wanted))); !ok) return ok;
  policy.log = log;
  return {};
}

// Counts the openings. Not of a store that has lost this run: the journal would be the last copy of
// what it did.
expected<void> hosted_run::state::take_up_records() {
  bool found = false;
  auto count = [&](wire::Record::Reader record) {
    found = true;
    plan.opening = std::max(plan.opening, record.getRun().getOpening() + 1);
    return true;
  };
  if (auto ok = records->scan_openings(plan.name, count); !ok) return ok;
  if (!found && has_journal(directory))
    return tl::unexpected<error>{
        run_incomplete(directory, "its records in " + directory.store + " are")};
  std::error_code ignored;
  if (found && !std::filesystem::exists(directory.artifacts, ignored))
    return tl::unexpected<error>{run_incomplete(directory, directory.artifacts + " is")};
  artifacts->remove_leftovers();
  return {};
}

// A fork that was killed before its shared turns were there gets them now. Answers whether the run
// is a fork.
expected<bool> hosted_run::state::take_up_fork() {
  auto origin = fork_of(directory);
  KM_TRY(origin);
  if (!*origin) return false;
  const auto& from = **origin;
  if (plan.groups.size() != 1 || plan.groups[0]->id != from.task)
    return configuration_error("config_inconsistent",
                               "failed to open the fork " + directory.path +
                                   ": its one group is of the task " + from.task,
                               "restore its config.json from a copy");
  if (!from.task_digest.empty() && plan.groups[0]->digest != from.task_digest)
    return configuration_error("task_changed",
                               "failed to go on from turns of " + from.run + ": the files of " +
                                   from.task + " have changed since",
                               "restore them, or start a new run");
  KM_TRY(commit_shared_turns(from, directory, plan.group_size, *records, *artifacts));
  return true;
}

expected<void> hosted_run::state::start_traces() {
  const auto& config = options.config;
  trackers::traced_run what;
  what.name = plan.name;
  what.group_size = plan.group_size;
  what.seed = config.run.seed;
  what.provider = config.policy.kind;
  what.model = config.policy.model;
  what.sampling = config.policy.sampling;
  what.stream = config.policy.stream;
  auto started = trackers::run_traces::start(config.otlp, std::move(what), records, artifacts, log);
  KM_TRY(started);
  traces = std::move(*started);
  return {};
}

// A run that is resumed may stand on another machine than before.
nlohmann::ordered_json hosted_run::state::fingerprint(const execution_facts& facts) const {
  nlohmann::ordered_json result = {{"opening", plan.opening}, {"at", seconds_since_1970()}};
  bool here = backend.hardware.empty();
  result.update(machine_fingerprint(backend, facts.toolchain, here ? backend.python : ""));
  return result;
}

expected<void> hosted_run::state::note_opening(const execution_facts& facts) const {
  auto manifest = read_json(directory.manifest_file());
  KM_TRY(manifest);
  auto& all = (*manifest)["fingerprints"];
  if (!all.is_array()) all = nlohmann::ordered_json::array();
  all.push_back(fingerprint(facts));
  return write_json(directory.manifest_file(), *manifest);
}

expected<void> hosted_run::open(const execution_facts& facts) {
  auto& x = *state_;
  auto& config = x.options.config;
  x.plan.sandbox_complete = facts.sandbox_complete;
  expected<run_directory> directory;
  if (x.options.resume) {
    directory = open_run(x.options.directory);
  } else {
    auto resolved = nlohmann::ordered_json::parse(x.options.config_json, nullptr, false);
    nlohmann::ordered_json fork;
    if (!x.options.fork_json.empty())
      fork = nlohmann::ordered_json::parse(x.options.fork_json, nullptr, false);
    auto manifest =
        run_manifest(x.plan, config.policy, x.policy, facts, x.rights, x.retrieval_facts(fork));
    manifest["fingerprints"] = nlohmann::ordered_json::array({x.fingerprint(facts)});
    if (fork.is_object()) manifest["fork"] = std::move(fork);
    directory = create_run({x.options.directory, config.run.name, config.storage.store}, resolved,
                           manifest);
  }
  if (auto ok = take(x.directory, std::move(directory)); !ok) return ok;
  x.plan.name = x.directory.name;
  x.plan.directory = x.directory.path;
  if (auto ok = x.open_log(); !ok) return ok;
  store_options storage;
  storage.directory = x.directory.store;
  storage.durable = config.storage.durable;
  auto records = store::open(storage);
  KM_TRY(records);
  x.records = std::make_shared<store>(std::move(*records));
  x.artifacts = std::make_shared<artifact_store>(x.directory.artifacts);
  x.artifacts->keep_recent(recent_text_bytes); // the journal reads what was committed just now
  if (x.options.resume) {
    KM_TRY(x.take_up_records());
    KM_TRY(x.note_opening(facts));
  }
  auto forked = x.take_up_fork();
  KM_TRY(forked);
  auto journal = run_journal::open(
      x.directory, {.events = config.trackers.tensorboard, .groups = x.plan.groups.size()});
  KM_TRY(journal);
  if (x.options.resume || *forked)
    if (auto ok = journal->catch_up(*x.records, *x.artifacts, x.plan.name); !ok) return ok;
  x.journal = std::make_shared<run_journal>(std::move(*journal));
  auto hooks = trackers::run_hooks::start(config.hooks, x.plan.name, x.directory.path, x.log);
  KM_TRY(hooks);
  x.hooks = std::move(*hooks);
  return x.start_traces();
}

// -- running ------------------------------------------------------------------------------------

std::shared_ptr<record_sink> hosted_run::state::make_sink() {
  sink = std::make_shared<store_sink>(records, artifacts);
  // The journal is a projection: what it misses can be written again, so the run goes on.
  auto note = [log = log, path = directory.path,
               told = std::make_shared<bool>(false)](const expected<void>& written) {
    if (written || std::exchange(*told, true)) return;
    log.warn({"lineage", {}, {}, {}},
             "lines of traces.jsonl and metrics.jsonl are missing: " + written.error().message +
                 "; `kernelmill fsck " + path + " --repair` adds them");
  };
  sink->on_fresh(
      [records = records, artifacts = artifacts, journal = journal, hooks = hooks, traces = traces,
       note, on_group = options.on_group, feed = retrieval.live ? retrieval.feed : nullptr,
       shown = shown_tasks(tasks, rights)](wire::Record::Reader record) {
        note(journal->collect(*records, *artifacts, record));
        if (hooks) hooks->follow(record);
        if (traces) traces->follow(record);
        if (on_group && record.isGroup()) on_group(record.getGroup().getGroup());
        if (feed) feed_verified(*feed, *artifacts, shown, record);
      },
      [journal = journal, note] { note(journal->flush()); });
  return sink;
}

void hosted_run::state::spawn_services(episode_services& services,
                                       const policy_client_actor& attached) {
  services.policy = options.config.policy.kind == "attached"
                        ? attached
                        : keep(system->spawn(http_policy_client, policy));
  services.retriever =
      keep(retrieval.index ? spawn_indexed_retriever(*system, retrieval.index, retrieval.feed)
                           : system->spawn(no_retriever));
  services.compiler = cluster;
  services.runner = cluster;
  services.profiler = cluster;
  services.governance = keep(system->spawn(rule_governance, governance));
  services.lineage = keep(spawn_group_commit_lineage(*system, make_sink(), lineage_config{}));
  services.prompts = std::make_shared<prompt_book>();
  services.log = log;
}

run_actor hosted_run::start(caf::actor_system& system, const cluster_actor& cluster,
                            const std::vector<status_actor>& others,
                            const policy_client_actor& attached) {
  auto& x = *state_;
  x.system = &system;
  x.cluster = cluster;
  x.monitor = x.keep(system.spawn(gathering_monitor));
  auto services = std::make_shared<episode_services>();
  x.spawn_services(*services, attached);
  x.run = x.keep(system.spawn(batch_run, x.plan, x.settings,
                              std::shared_ptr<const episode_services>{services}, x.board));
  x.watch(x.run);
  x.watch(cluster);
  x.policy_asked = services->policy;
  x.watch(services->policy);
  x.watch(services->retriever);
  x.watch(services->governance);
  x.watch(services->lineage);
  for (auto& who : others) x.watch(who);
  if (x.hooks) x.watch_nodes(others);
  auto control = control_socket::open(x.directory.control_socket(),
                                      [raw = &x] { return raw->introspection(); });
  if (control) x.control = std::move(*control); // without the socket `ps` is blind
  return x.run;
}

progress hosted_run::state::read_progress() const {
  auto counters = board->counters();
  progress now;
  now.episodes_total = static_cast<uint32_t>(plan.groups.size()) * plan.group_size;
  now.episodes_done = counters.ended;
  now.episodes_live = counters.live;
  now.turns = counters.turns;
  now.turns_fresh = counters.fresh_turns;
  now.turns_ended = counters.ended_turns;
  now.accepted = counters.accepted;
  now.rejected = counters.rejected;
  now.infrastructure = counters.infrastructure;
  now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return now;
}

// A year: the run has its own deadlines, and this request has none to add.
void hosted_run::state::begin_run() {
  auto ended = std::make_shared<std::promise<expected<Message<wire::RunSummary>>>>();
  summary = ended->get_future();
  started = std::chrono::steady_clock::now();
  system->spawn([ended, run = run](caf::event_based_actor* self) {
    self->request(run, std::chrono::minutes{60 * 24 * 365}, atom::start_v)
        .then([ended](const Message<wire::RunSummary>& x) { ended->set_value(x); },
              [ended](caf::error& why) { ended->set_value(tl::unexpected<error>{from_caf(why)}); });
  });
}

expected<Message<wire::RunSummary>> hosted_run::wait(std::stop_token stop) {
  auto& x = *state_;
  x.begin_run();
  caf::scoped_actor self{*x.system};
  auto report = [&] {
    if (!x.options.on_progress) return;
    auto now = x.read_progress();
    auto ask = [&](const auto& whom, auto read) {
      self->request(whom, 1s, atom::status_v)
          .receive([&](const Message<wire::Snapshot>& says) { read(now, *says.open()); },
                   [](caf::error&) {});
    };
    ask(x.policy_asked, read_policy);
    ask(x.cluster, read_cluster);
    x.options.on_progress(now);
  };
  bool cancelled = false;
  while (x.summary.wait_for(200ms) != std::future_status::ready) {
    if (stop.stop_requested() && !cancelled) {
      cancelled = true;
      self->send(x.run, atom::cancel_v);
    }
    report();
  }
  report();
  x.control.reset();
  x.sink->settle(); // the files say what the summary says
  return x.summary.get();
}

// A head that has the run stands among the others and knows its nodes.
void hosted_run::state::watch_nodes(const std::vector<status_actor>& others) {
  hooks->watch_nodes([system = system, others]() -> std::optional<trackers::node_roster> {
    caf::scoped_actor self{*system};
    std::optional<trackers::node_roster> result;
    for (const auto& who : others)
      self->request(who, 2s, atom::status_v)
          .receive(
              [&](const Message<wire::Snapshot>& says) {
                auto view = says.open();
                if (view->getActor() != "head") return;
                result.emplace();
                for (auto child : view->getChildren())
                  if (child.getActor() == "node") result->names.insert(child.getId().cStr());
                for (auto number : view->getNumbers())
                  if (number.getName() == "lost")
                    result->lost = static_cast<uint64_t>(number.getValue());
              },
              [](caf::error&) {});
    return result;
  });
}

Message<wire::Snapshot> hosted_run::state::introspection() const {
  caf::scoped_actor self{*system};
  Message<wire::Snapshot> result;
  self->request(monitor, 5s, atom::status_v)
      .receive([&](const Message<wire::Snapshot>& x) { result = x; },
               [&](caf::error& why) {
                 result = snapshot_of("error", {}, "silent", system->render(why), {});
               });
  return result;
}

void hosted_run::pause(bool on) {
  caf::anon_send(state_->run, atom::pause_v, on);
}

void hosted_run::hold(bool on) {
  state_->board->held = on;
  if (!on) caf::anon_send(state_->run, atom::proceed_v);
}

std::shared_ptr<const store> hosted_run::records() const {
  return state_->records;
}

} // namespace kernelmill
