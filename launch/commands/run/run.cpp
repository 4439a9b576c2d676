// `kernelmill run` and `kernelmill resume`.

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/world.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/commands/run/run_driver.hpp"
#include "launch/commands/run/sweep.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/sources.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/commands/store/run_bundle.hpp"
#include "launch/config/keys.hpp"
#include "launch/node/node.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"
#include "storage/head_mark.hpp"
#include "storage/restore/restore.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// What may change between a run and its resumption: how, not what. Anything else would make one
/// run of two experiments.
expected<void> check_resume_overrides(const run_config& before, const run_config& after) {
  for (const auto& key : config_keys())
    if (!key.may_change && key.get(before) != key.get(after))
      return configuration_error("config_changed",
                                 "failed to resume: '" + key.name +
                                     "' differs from what the run began with",
                                 "start a new run, or leave it as it was");
  return {};
}

/// A search that has ended goes on with a larger budget.
bool has_other_budget(const run_config& before, const run_config& after) {
  return std::any_of(config_keys().begin(), config_keys().end(), [&](const config_key& key) {
    return key.name.starts_with("search.") && key.get(before) != key.get(after);
  });
}

/// What is committed, whichever end the run had.
expected<void> bundle_run(const invocation& in, const std::string& directory) {
  auto run = open_run(directory);
  KM_TRY(run);
  auto made = make_run_bundle(in, {*run, {}, true}, {in.value("--bundle"), true});
  KM_TRY(made);
  cli::talk(fmt::format("bundle: {}, {}, {}", in.value("--bundle"), counted(made->turns, "turn"),
                        counted(made->files, "file")));
  return {};
}

expected<int> run(const invocation& in) {
  if (in.has("--sweep")) return run_sweep(in);
  if (in.has("--on")) return on_host(in, run_row());
  auto sources = sources_of(in.list("CONFIG"));
  if (in.has("--split")) sources.overrides.push_back("tasks.split=" + in.value("--split"));
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  run_options options;
  options.config = std::move(loaded->config);
  KM_TRY(accept_terms(in, options.config));
  name_run(options.config, sources);
  options.directory = options.config.run.dir;
  options.config_json = kernelmill::to_json(options.config).dump(2);
  if (in.has("--dry-run")) {
    cli::print(options.config_json + "\n");
    return cli::exit_ok;
  }
  if (!in.has("--bundle")) return drive_run(in, std::move(options));
  KM_TRY(bundles::check_free_folder(in.value("--bundle")));
  auto directory = options.directory;
  auto code = drive_run(in, std::move(options));
  KM_TRY(code);
  auto left = bundle_run(in, directory);
  if (!left && *code == cli::exit_ok) return tl::unexpected<error>{left.error()};
  if (!left) cli::talk(left.error().message); // the run's own end says more
  return code;
}

/// Of rows that were left out all are told up to this many.
constexpr size_t most_told = 20;

expected<void> restore_from_traces(const run_directory& run, const run_config& config) {
  if (watch::is_worked_on(run))
    return configuration_error("store_locked",
                               "failed to restore " + run.path + ": a process runs it",
                               "end it first; `kernelmill ps` lists runs in progress");
  const auto& tasks = config.tasks;
  auto done = restore_run(run, {config.retrieval.enabled, tasks.groups, tasks.group_size});
  KM_TRY(done);
  if (!*done) {
    cli::talk("nothing is to be restored: " + run.store + " has the records of the run");
    return {};
  }
  const auto& x = **done;
  for (size_t i = 0; i < std::min(x.broken.size(), most_told); ++i)
    cli::talk("left out " + cli::clean(x.broken[i]));
  if (x.broken.size() > most_told)
    cli::talk(fmt::format("left out {}", counted(x.broken.size() - most_told, "more row")));
  cli::talk(fmt::format("restored {} with {} from {}; {} of which rows are missing "
                        "are done again",
                        counted(x.episodes, "episode"), counted(x.turns, "turn"),
                        shown_path(x.kept), x.again));
  return {};
}

expected<void> check_not_imported(const run_directory& run, bool from_traces) {
  if (!is_imported(run)) return {};
  return configuration_error(
      "usage", "failed to resume " + run.path + ": it was imported, so nothing of it is to be run",
      from_traces ? "import it again: " + command_for_lost_records(run)
                  : "`kernelmill show " + run.path + "` reads it");
}

/// Ends the pause of a run in progress, which another process has; so `resume` of one that is not
/// paused changes nothing. False: there is none, or it is a head's, or more was asked.
expected<bool> goes_on_elsewhere(const invocation& in, const run_directory& run) {
  if (in.has("OVERRIDE") || in.has("--from-traces") || !watch::is_worked_on(run) || is_of_head(run))
    return false;
  auto now = watch::ask_control_socket(run);
  bool was_paused = now && watch::read_live({run, std::move(*now)}).state == "paused";
  auto done = watch::order_run(run, "resume");
  if (!done && done.error().category == "run_not_live") return false; // it has ended meanwhile
  KM_TRY(done);
  if (in.json)
    cli::print_json({{"run", run.name}, {"directory", run.path}, {"order", "resume"}});
  else
    cli::talk(was_paused ? run.name + " goes on"
                         : run.name + " was not paused: it is running, and nothing was changed");
  return true;
}

expected<int> resume(const invocation& in) {
  bool from_traces = in.has("--from-traces");
  if (in.has("--head") && from_traces)
    return configuration_error("usage",
                               "failed to resume: --from-traces is for runs of this machine",
                               "give it without --head, where the run's directory is");
  if (in.has("--head")) return resume_at_head(in);
  auto found = find_run(in.value("RUN"), in.value("--root"), from_traces);
  KM_TRY(found);
  KM_TRY(check_not_imported(*found, from_traces));
  auto goes_on = goes_on_elsewhere(in, *found);
  KM_TRY(goes_on);
  if (*goes_on) return cli::exit_ok;
  std::error_code code;
  auto directory = fs::canonical(found->path, code).string();
  config_sources sources;
  sources.files = {found->config_file()};
  auto before = load_config(sources);
  KM_TRY(before);
  sources.overrides = in.list("OVERRIDE");
  sources.directory = fs::current_path(code).string();
  auto after = load_config(sources);
  KM_TRY(after);
  KM_TRY(check_resume_overrides(before->config, after->config));
  KM_TRY(accept_terms(in, after->config));
  if (from_traces) KM_TRY(restore_from_traces(*found, after->config));
  run_options options;
  options.config = std::move(after->config);
  options.config.run.name = found->name;
  options.config.run.dir = directory; // it may have been moved
  options.resume = true;
  options.directory = directory;
  options.config_json = kernelmill::to_json(options.config).dump(2);
  bool finished =
      !from_traces && has_finished(*found) && !has_other_budget(before->config, options.config);
  if (finished && after->origins["log.level"] != "the command line")
    options.config.log.level = "warn";
  auto result = drive_run(in, std::move(options), finished ? told::end_of_done : told::all);
  if (!result && result.error().category == "store_locked" && is_of_head(*found))
    return configuration_error(
        "store_locked", "failed to resume " + found->name + ": a head works on it",
        "`kernelmill resume " + found->name + " --head ADDR:PORT` asks that head");
  return result;
}

std::vector<cli::option_spec> resume_options() {
  auto result = with_head_options(
      with_monitor_options({flag("--from-traces", "Rebuilds a lost store from traces.jsonl."),
                            accept_terms_option(), runs_root()}));
  for (auto& x : result)
    if (x.name == std::string_view{"--head"})
      x.doc = "Head that has the run. Default: a run of this machine.";
  return result;
}

} // namespace

cli::command run_row() {
  return {
      "run",
      "Runs a configuration: episodes of every task, until all have ended.",
      "kernelmill run quickstart\n"
      "kernelmill run configs/quickstart.json tasks.ids='[\"native/softmax\"]' run.dir=runs/first\n"
      "kernelmill run quickstart --split dev run.dir=runs/held_out\n"
      "kernelmill run quickstart --sweep tasks.group_size=2,4 --sweep tasks.max_turns=1,4 "
      "--dry-run",
      "Later files and overrides win. The first Ctrl-C stops the run and keeps every committed "
      "turn. A second\n"
      "one ends it at once. `kernelmill config show --resolved --origin CONFIG...` shows the "
      "configuration of the run.\n"
      "--sweep runs every combination of values, one after the other, each as runs/NAME with its "
      "values in its name,\n"
      "and ends with a table. run.name begins the names, run.dir holds the runs. The same command "
      "takes a sweep up: it\n"
      "passes over what has finished and goes on with what has begun. With --dry-run it lists the "
      "runs.",
      {config_words()},
      with_monitor_options({{"--split",
                             "NAME",
                             "Only tasks of this split, as tasks.split; `dev` is held out.",
                             "",
                             false,
                             {"train", "dev"},
                             nothing},
                            accept_terms_option(),
                            bundle_option(),
                            on_option(),
                            {"--sweep",
                             "KEY=A,B",
                             "Runs each of these values of a key; again for the grid with another "
                             "key. JSON lists keep their commas.",
                             "",
                             false,
                             {},
                             nothing,
                             "",
                             true},
                            flag("--dry-run", "Prints the resolved configuration and exits.")}),
      run};
}

cli::command resume_row() {
  return {"resume",
          "Continues a run from its last committed turns.",
          "kernelmill resume first\nkernelmill resume runs/first "
          "policy.base_url=http://127.0.0.1:8000/v1",
          "A run that `pause` holds goes on in the process that has it. Overrides may change "
          "addresses, keys, slots,\n"
          "deadlines and the log. They may not change what the run measures. --from-traces "
          "restores episodes that have ended and have all their rows, "
          "does others again,\n"
          "and keeps the rows as traces.jsonl.before. With --head it continues a run of that head "
          "that was paused,\n"
          "was cancelled or has failed.",
          {{"RUN", "Name of a run, or its directory.", true, false, completes::run, {}},
           {"OVERRIDE", "a.b=value.", false, true, nothing, {}}},
          resume_options(),
          resume};
}

} // namespace kernelmill::commands
