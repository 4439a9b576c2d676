#include "launch/node/hosted_run.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/episode/tools/tool_words.hpp"
#include "actors/monitor/monitor.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/retriever/indexed_retriever.hpp"
#include "actors/retriever/no_retriever.hpp"
#include "actors/snapshots.hpp"
#include "launch/node/hosted_run_state.hpp"
#include "launch/node/progress_view.hpp"

namespace kernelmill {

using namespace std::chrono_literals;

std::chrono::milliseconds longest_lease(const run_config& config) {
  using std::chrono::milliseconds;
  return milliseconds{std::max(config.compile.deadline_ms, config.compile.torch_deadline_ms)} +
         milliseconds{
             std::max(config.evaluation.deadline_ms, config.evaluation.torch_deadline_ms)} +
         milliseconds{config.sanitized_ms()} + 2min;
}

hosted_run::hosted_run(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

hosted_run::~hosted_run() {
  auto& x = *state_;
  x.control.reset();
  if (x.hooks) x.hooks->watch_nodes({}); // the actors that it asks may end
  for (auto& actor : x.actors) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  if (x.sink) x.sink->settle(); // the next process of the run reads its journal
  if (x.verified) x.verified->settle();
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

// -- running ------------------------------------------------------------------------------------

void hosted_run::state::watch(const status_actor& actor) {
  caf::anon_send(monitor, atom::observe_v, actor);
}

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
       note, on_group = options.on_group, verified = verified](wire::Record::Reader record) {
        note(journal->collect(*records, *artifacts, record));
        if (hooks) hooks->follow(record);
        if (traces) traces->follow(record);
        if (on_group && record.isGroup()) on_group(record.getGroup().getGroup());
        if (verified) verified->follow(record);
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
  if (options.config.search.on())
    services.search =
        keep(system->spawn(guided_search, services.lineage,
                           search_settings_of(options.config, settings->profile_feedback)));
  services.prompts = prompts_of(*settings);
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
  if (services->search) x.watch(services->search);
  for (auto& actor : others) x.watch(actor);
  if (x.hooks) x.watch_nodes(others);
  auto control = control_socket::open(
      x.directory.control_socket(), [raw = &x] { return raw->introspection(); },
      [raw = &x](const std::string& verb) { return raw->obey(verb); });
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
  now.infrastructure = counters.infrastructure();
  now.paused = paused;
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
  bool cancelled = false;
  auto report = [&] {
    if (!x.options.on_progress) return;
    auto now = x.read_progress();
    now.ending = cancelled;
    auto ask = [&](const auto& actor, auto read) {
      self->request(actor, 1s, atom::status_v)
          .receive([&](const Message<wire::Snapshot>& says) { read(now, *says.open()); },
                   [](caf::error&) {});
    };
    ask(x.policy_asked, read_policy);
    ask(x.cluster, read_cluster);
    x.options.on_progress(now);
  };
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
    for (const auto& actor : others)
      self->request(actor, 2s, atom::status_v)
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
  state_->pause(on);
}

void hosted_run::state::pause(bool on) {
  paused = on;
  caf::anon_send(run, atom::pause_v, on);
}

// The head would not know: it alone changes the states of its runs.
expected<void> hosted_run::state::obey(const std::string& verb) {
  if (!options.on_cancel)
    return configuration_error("not_live", "a head has the run and takes its orders");
  if (verb == "cancel") {
    options.on_cancel();
    caf::anon_send(run, atom::cancel_v); // the next question for its state is answered `ending`
  } else if (verb == "pause" || verb == "resume") {
    pause(verb == "pause");
  } else {
    return configuration_error("usage", "it does not know the order '" + verb + "'");
  }
  return {};
}

void hosted_run::hold(bool on) {
  state_->board->held = on;
  if (!on) caf::anon_send(state_->run, atom::proceed_v);
}

std::shared_ptr<const store> hosted_run::records() const {
  return state_->records;
}

} // namespace kernelmill
