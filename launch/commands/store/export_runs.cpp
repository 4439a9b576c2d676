#include "launch/commands/store/export_runs.hpp"

#include "launch/commands/run_view.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"
#include "storage/lineage/fork.hpp"
#include "storage/lineage/verdicts.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

/// The latest state of the run's own records: how its last session ended.
expected<json> state_of(const store& lineage, const std::string& run) {
  json result = "open";
  uint32_t opening = 0;
  auto ok = lineage.scan_openings(run, [&](wire::Record::Reader record) {
    auto x = record.getRun();
    if (x.getOpening() >= opening) {
      opening = x.getOpening();
      auto word = std::string{x.getState().cStr()};
      result = word == "running" ? "open" : word;
    }
    return true;
  });
  KM_TRY(ok);
  return result;
}

void copy(json& to, const json& from, const char* key) {
  if (from.contains(key)) to[key] = from[key];
}

/// What the run's folder says of it. Addresses stay out: an export is passed on.
expected<exports::source> source_of(const exported_run& run) {
  auto manifest = read_json(run.where.manifest_file());
  KM_TRY(manifest);
  auto config = read_json(run.where.config_file());
  KM_TRY(config);
  exports::source result;
  result.run = run.where.name;
  result.lineage = &run.lineage;
  result.artifacts = &run.artifacts;
  result.temperature =
      config->value(json::json_pointer{"/policy/sampling/temperature"}, result.temperature);
  auto state = state_of(run.lineage, run.where.name);
  KM_TRY(state);
  result.facts["state"] = *state;
  for (const auto* key :
       {"created_at", "config_digest", "toolchain", "tasks", "imported", "restored"})
    copy(result.facts, *manifest, key);
  if (auto model = manifest->value(json::json_pointer{"/policy/licence"}, std::string{});
      !model.empty())
    result.facts["model_licence"] = model;
  if (auto fork = fork_of(*manifest)) {
    result.shared_turns = fork->turns;
    result.facts["fork"] = {{"run", fork->run},
                            {"group", fork->group},
                            {"member", fork->member},
                            {"turns", fork->turns},
                            {"turn_id", fork->turn_id}};
  }
  for (const auto& task : manifest->value("tasks", json::array()))
    if (task.contains("split"))
      result.splits[task.value("id", std::string{})] = task.value("split", std::string{});
  return result;
}

/// Rows take their verdicts from the version that --verdict names.
expected<void> choose_verdicts(const cli::invocation& in, exported_run& run,
                               exports::source& source) {
  auto version = find_verdicts(run.where, in.value("--verdict"));
  KM_TRY(version);
  source.facts["verdict"] = {{"name", original_verdicts}};
  if (!*version) return {};
  store_options options;
  options.directory = (*version)->store();
  options.read_only = true;
  auto verdicts = store::open(options);
  KM_TRY(verdicts);
  run.verdicts = std::move(*verdicts);
  source.verdicts = &*run.verdicts;
  source.facts["verdict"] = (*version)->rules;
  return {};
}

} // namespace

expected<exported_runs> open_runs(const cli::invocation& in, purpose wanted) {
  exported_runs result;
  auto licences = installed_licences();
  KM_TRY(licences);
  auto accepted = accepted_terms(in, *licences);
  KM_TRY(accepted);
  result.accepted_terms = std::move(*accepted);
  for (const auto& name : in.list("RUN")) {
    auto where = find_run(name, in.value("--root"));
    KM_TRY(where);
    for (const auto& known : result.opened)
      if (known.where.name == where->name)
        return configuration_error("usage",
                                   "failed to run 'export': there are two runs of the "
                                   "name " +
                                       where->name,
                                   "name each run once");
    auto lineage = open_for_reading(*where);
    KM_TRY(lineage);
    KM_TRY(check_store_of(*where, *lineage));
    auto artifacts = artifact_store{where->artifacts};
    result.opened.push_back({std::move(*where), std::move(*lineage), std::move(artifacts)});
    auto source = source_of(result.opened.back());
    KM_TRY(source);
    auto may = permits_of(result.opened.back().where, *licences, wanted, result.accepted_terms);
    KM_TRY(may);
    source->may = std::move(*may);
    KM_TRY(choose_verdicts(in, result.opened.back(), *source));
    result.sources.push_back(std::move(*source));
  }
  return result;
}

json made_by() {
  return {{"program", "kernelmill"}, {"version", KERNELMILL_VERSION}, {"git", KERNELMILL_GIT}};
}

} // namespace kernelmill::commands
