#include <algorithm>
#include <filesystem>

#include "launch/config/load.hpp"
#include "launch/machine/fingerprint.hpp"
#include "launch/node/hosted_run_state.hpp"
#include "launch/node/run_manifest.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/lineage/fork.hpp"

namespace kernelmill {

namespace {

constexpr size_t recent_text_bytes = size_t{16} << 20;

template <class T>
expected<void> take(T& into, expected<T> from) {
  KM_TRY(from);
  into = std::move(*from);
  return {};
}

} // namespace

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

expected<void> hosted_run::state::prepare(const chosen_backend& chosen) {
  auto& config = options.config;
  if (auto ok = take(tasks, load_tasks(config, chosen)); !ok) return ok;
  plan = plan_of(config, tasks);
  plan.config_digest = config_digest(config);
  if (auto ok = take(plan.advantages, advantage_of(config.advantage)); !ok) return ok;
  if (auto ok = take(governance, governance_of(config)); !ok) return ok;
  settings = settings_of(config, chosen.name, governance.reward,
                         options.resume || !options.fork_json.empty());
  if (auto ok = take(policy, policy_of(config)); !ok) return ok;
  KM_TRY(trackers::run_hooks::check(config.hooks));
  if (auto ok = take(licences, installed_licences()); !ok) return ok;
  KM_TRY(take_up_rights());
  KM_TRY(trackers::run_traces::check(config.otlp));
  if (auto ok = start_policy_server(); !ok) return ok;
  return take(retrieval, open_retrieval(config.retrieval, tasks));
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

// Counts the sessions. Not of a store that has lost this run: the journal would be the last copy of
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
        run_incomplete(directory, "its records in " + directory.store + " are", true)};
  // Before the first turn it is empty, and copies may leave out what is.
  std::error_code ignored;
  if (!std::filesystem::exists(directory.artifacts, ignored)) {
    if (has_journal(directory))
      return tl::unexpected<error>{run_incomplete(directory, directory.artifacts + " is")};
    KM_TRY(make_directories(directory.artifacts));
  }
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

// Before the retriever begins. The one task of a fork is the one that its kernels solve, so that
// its earlier ones are no examples.
expected<void> hosted_run::state::follow_verified(bool take_up) {
  if (!retrieval.warning.empty()) log.warn({"retriever", {}, {}, {}}, retrieval.warning);
  if (!retrieval.live) return {};
  terms_of_run terms;
  terms.licences = licences;
  terms.policy_licence = options.config.policy.licence;
  terms.accepted = rights.accepted;
  auto manifest = read_json(directory.manifest_file());
  KM_TRY(manifest);
  terms.take_examples(manifest->value("retrieval", nlohmann::ordered_json()));
  verified = std::make_shared<verified_kernels>(
      retrieval, shown_tasks(tasks, rights), std::move(terms), artifacts,
      [log = log, path = directory.path](const error& why) {
        log.warn({"retriever", {}, {}, {}},
                 "verified kernels are missing in the index: " + why.message +
                     "; `kernelmill resume " + path + "` adds them");
      });
  return take_up ? verified->take_up(*records, plan.name) : expected<void>{};
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
  auto begun = trackers::run_traces::start(config.otlp, std::move(what), records, artifacts, log);
  KM_TRY(begun);
  traces = std::move(*begun);
  return {};
}

// A run that is resumed may stand on another machine than before.
nlohmann::ordered_json hosted_run::state::fingerprint(const execution_facts& facts) const {
  nlohmann::ordered_json result = {{"opening", plan.opening}, {"at", seconds_since_1970()}};
  bool here = backend.hardware.empty();
  result.update(machine_fingerprint(backend, facts.toolchain, here ? backend.python : ""));
  return result;
}

expected<void> hosted_run::state::record_session(const execution_facts& facts) const {
  auto manifest = read_json(directory.manifest_file());
  KM_TRY(manifest);
  auto& all = (*manifest)["fingerprints"];
  if (!all.is_array()) all = nlohmann::ordered_json::array();
  all.push_back(fingerprint(facts));
  // Other runs may have added kernels to the index since.
  auto known = manifest->find("retrieval");
  if (known != manifest->end() && known->is_object() && known->contains("examples")) {
    auto& list = (*known)["examples"];
    for (const auto now = retrieval_facts({}); const auto& x : now["examples"])
      if (std::find(list.begin(), list.end(), x) == list.end()) list.push_back(x);
  }
  KM_TRY(write_json(directory.manifest_file(), *manifest));
  return record_budget();
}

// A search goes on with a larger budget, and readers take it from config.json.
expected<void> hosted_run::state::record_budget() const {
  auto now = nlohmann::ordered_json::parse(options.config_json, nullptr, false);
  auto before = read_json(directory.config_file());
  KM_TRY(before);
  if (!now.is_object() || !now.contains("search") || (*before)["search"] == now["search"])
    return {};
  (*before)["search"] = now["search"];
  return write_json(directory.config_file(), *before);
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
    KM_TRY(x.record_session(facts));
  }
  auto forked = x.take_up_fork();
  KM_TRY(forked);
  auto journal = run_journal::open(
      x.directory, {.events = config.trackers.tensorboard, .groups = x.plan.groups.size()});
  KM_TRY(journal);
  if (x.options.resume || *forked)
    if (auto ok = journal->catch_up(*x.records, *x.artifacts, x.plan.name); !ok) return ok;
  x.journal = std::make_shared<run_journal>(std::move(*journal));
  KM_TRY(x.follow_verified(x.options.resume && !*forked));
  auto hooks = trackers::run_hooks::start(config.hooks, x.plan.name, x.directory.path, x.log);
  KM_TRY(hooks);
  x.hooks = std::move(*hooks);
  return x.start_traces();
}

} // namespace kernelmill
