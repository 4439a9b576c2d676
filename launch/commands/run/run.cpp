// `kernelmill run` and `kernelmill resume`.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stop_token>

#include <fmt/format.h>

#include "launch/analysis/watch/world.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/head_runs.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/commands/run/progress_display.hpp"
#include "launch/commands/run/run_driver.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/sources.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/commands/store/run_bundle.hpp"
#include "launch/config/keys.hpp"
#include "launch/node/node.hpp"
#include "launch/node/run_rights.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"
#include "messages/json.hpp"
#include "storage/lineage/fork.hpp"
#include "storage/restore/restore.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// The path as a user would type it.
std::string shown_path(const std::string& path) {
  std::error_code code;
  auto relative = fs::path{path}.lexically_relative(fs::current_path(code)).string();
  return relative.empty() || relative.starts_with("..") ? path : relative;
}

json summary_json(wire::RunSummary::Reader x) {
  auto result = kernelmill::to_json(capnp::DynamicStruct::Reader{x});
  json stages = json::object();
  for (auto s : x.getStages()) stages[s.getName().cStr()] = s.getValue();
  result["stages"] = stages;
  return result;
}

std::string slot_stages_text(wire::RunSummary::Reader x) {
  const std::string prefix = "slot.";
  std::string result;
  for (auto s : x.getStages()) {
    std::string name = s.getName();
    if (!name.starts_with(prefix) || s.getValue() <= 0) continue;
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", name.substr(prefix.size()),
                          cli::format_seconds(s.getValue()));
  }
  return result;
}

// Turns work side by side, and most of them wait meanwhile: one sum of both would be hours of a run
// of minutes.
std::string work_text(const run_view& view) {
  std::string work, waiting;
  auto add = [](std::string& to, const std::string& stage, double seconds) {
    if (seconds >= 0.0005)
      to += fmt::format("{}{} {}", to.empty() ? "" : ", ", stage, cli::format_seconds(seconds));
  };
  for (const auto& [stage, sum] : view.stages) {
    add(work, stage, sum.work);
    add(waiting, stage, sum.seconds - sum.work);
  }
  std::string result;
  if (!work.empty()) result += cli::hanging("", 0, "work on all turns, side by side: " + work);
  if (!waiting.empty()) result += cli::hanging("", 0, "turns waited for a worker: " + waiting);
  return result;
}

std::string counts_text(wire::RunSummary::Reader x) {
  auto t = x.getTotals();
  return fmt::format("{} groups, {} episodes, {} turns", t.getGroups(), t.getEpisodes(),
                     t.getTurns());
}

std::string finished_before(wire::RunSummary::Reader x) {
  return "finished before: " + counts_text(x) + "; nothing was left to do\n";
}

std::string summary_text(wire::RunSummary::Reader x, const run_view* view) {
  auto t = x.getTotals();
  std::string result;
  if (view && !view->episodes.empty()) result += task_table(*view) + "\n";
  double worked = 0;
  for (auto stage : x.getStages()) worked += stage.getValue();
  if (x.getOutcome() == "finished" && worked <= 0)
    result += finished_before(x);
  else
    result += fmt::format("{}: {} in {}\n", x.getOutcome().cStr(), counts_text(x),
                          cli::format_seconds(x.getSeconds()));
  result += fmt::format("{} accepted, {} rejected, {} infrastructure", t.getAccepted(),
                        t.getRejected(), t.getInfrastructure());
  if (t.getDropped() > 0) result += fmt::format(", {} dropped", t.getDropped());
  result += "\n" + not_timed_text(t.getNotTimed(), t.getUnpaid());
  for (auto alarm : x.getAlarms()) result += alarm_text(alarm.cStr());
  if (view) result += work_text(*view);
  if (auto slots = slot_stages_text(x); !slots.empty())
    result += cli::hanging("", 0, "summed over all evaluations, in their slots: " + slots);
  result += fmt::format("run: {}\n", shown_path(x.getDirectory().cStr()));
  return result;
}

/// The exit code of a run that has started.
int outcome_code(wire::RunSummary::Reader x) {
  std::string outcome = x.getOutcome();
  if (outcome == "cancelled") return 128 + (interrupt::signal() == 0 ? 2 : interrupt::signal());
  if (outcome == "finished") return cli::exit_ok;
  return cli::exit_code(fault_of(x.getFault()));
}

// Of a demonstration, which one who has just come runs.
void tell_next(const std::string& directory) {
  cli::talk("next:\n  kernelmill show " + directory + "    its episodes; " + directory +
            "/g0.e0.t0 is a turn\n  kernelmill report " + directory +
            "  its metrics by task\n  kernelmill page " +
            (fs::path{directory}.has_parent_path() ? fs::path{directory}.parent_path().string()
                                                   : std::string{"."}) +
            "  all runs in a browser");
}

void tell_outcome(const invocation& in, wire::RunSummary::Reader x) {
  std::string outcome = x.getOutcome();
  if (outcome == "finished") return;
  auto directory = shown_path(x.getDirectory().cStr());
  if (auto fault = fault_of(x.getFault()); fault.cls != fault_class::none)
    cli::print_error(fault, in.json, in.colour_err);
  cli::talk("committed turns are kept; continue with: kernelmill resume " + directory);
}

/// As the run's manifest has them, with the terms that are accepted now.
run_rights stored_rights(const run_options& options) {
  const auto& terms = options.config.run.accepted_terms;
  auto licences = installed_licences(); // read before, when the run was planned
  auto manifest = read_json(options.directory + "/manifest.json");
  if (!licences || !manifest) return {};
  auto result = rights_of(*licences, origins_of(*manifest), {terms.begin(), terms.end()});
  auto add = [&](const std::string& model, const std::string& licence) {
    if (auto x = rights_of_answers(*licences, model, licence, result.accepted))
      result.answers.push_back(std::move(*x));
  };
  // The first turns of a fork are answers of its origin's model.
  if (auto shared = policies_of_shared_turns(*manifest))
    for (const auto& x : *shared) add(x.model, x.licence);
  const auto& policy = options.config.policy;
  add(policy.model, policy.licence);
  return result;
}

/// --accept-terms is a short name for run.accepted_terms.
expected<void> accept_terms(const invocation& in, run_config& config) {
  auto licences = installed_licences();
  KM_TRY(licences);
  auto accepted = accepted_terms(in, *licences);
  KM_TRY(accepted);
  for (const auto& x : *accepted)
    if (std::find(config.run.accepted_terms.begin(), config.run.accepted_terms.end(), x) ==
        config.run.accepted_terms.end())
      config.run.accepted_terms.push_back(x);
  return {};
}

} // namespace

expected<int> drive_run(const invocation& in, run_options options, bool was_finished) {
  interrupt signals;
  std::stop_source wanted; // by a signal, or by the page
  std::stop_callback pass_on{signals.token(), [&] { wanted.request_stop(); }};
  auto web = monitor_options(in, "--monitor");
  KM_TRY(web);
  std::unique_ptr<run_page> page;
  if (*web) {
    auto started =
        run_page::start(std::move(**web), options.directory, [&] { wanted.request_stop(); });
    KM_TRY(started);
    page = std::move(*started);
    options.on_hosted = [&](hosted_run* run) { page->show(run); };
    cli::talk("page: " + page->url());
  }
  progress_display display{::isatty(2) == 1, options.config.tasks.max_turns};
  options.on_cancel = [&] {
    if (wanted.request_stop()) display.say("ending: `kernelmill cancel` asked for it");
  };
  std::stop_callback tell{
      signals.token(), [&display] {
        display.say("ending: waiting for steps in progress; press Ctrl-C again to end at once");
      }};
  if (!in.json && !was_finished) {
    options.on_progress = [&](const progress& x) { display.update(x); };
    options.on_warning = [&](std::string_view line) { display.say(line); };
  }
  std::optional<run_rights> rights;
  options.on_start = [&] {
    rights = stored_rights(options);
    if (was_finished) return;
    cli::talk((options.resume ? "resuming " : "run ") + options.config.run.name + " in " +
              shown_path(options.directory));
    for (const auto& line : lines_of(*rights)) cli::talk(line);
  };
  auto summary = run_node(options, wanted.get_token());
  display.finish();
  KM_TRY(summary);
  auto opened = summary->open();
  auto run = open_run(options.directory);
  auto view = run ? view_run(*run) : expected<run_view>{tl::unexpected<error>{run.error()}};
  if (in.json) {
    auto document = summary_json(*opened);
    if (view) document["tasks"] = to_json(*view)["tasks"];
    if (rights) document["licences"] = to_json(*rights);
    cli::print_json(document);
  } else if (was_finished && opened->getOutcome() == "finished") {
    cli::print(options.config.run.name + " " + finished_before(*opened));
  } else {
    cli::print(summary_text(*opened, view ? &*view : nullptr));
  }
  tell_outcome(in, *opened);
  if (opened->getOutcome() == "finished" && options.config.policy.kind == "scripted" &&
      !options.resume)
    tell_next(shown_path(options.directory));
  return outcome_code(*opened);
}

namespace {

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

/// What is committed, whichever end the run had.
expected<void> bundle_run(const invocation& in, const std::string& directory) {
  auto run = open_run(directory);
  KM_TRY(run);
  auto made = make_run_bundle(in, {*run, {}, true}, {in.value("--bundle"), true});
  KM_TRY(made);
  cli::talk(fmt::format("bundle: {}, {} turns, {} files", in.value("--bundle"), made->turns,
                        made->files));
  return {};
}

expected<int> run(const invocation& in) {
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
    cli::talk(fmt::format("left out {} more rows", x.broken.size() - most_told));
  cli::talk(fmt::format("restored {} episodes with {} turns from {}; {} of which rows are missing "
                        "are done again",
                        x.episodes, x.turns, shown_path(x.kept), x.again));
  return {};
}

expected<void> check_not_imported(const run_directory& run, bool from_traces) {
  if (!is_imported(run)) return {};
  return configuration_error(
      "usage", "failed to resume " + run.path + ": it was imported, so nothing of it is to be run",
      from_traces ? "import it again: " + command_for_lost_records(run)
                  : "`kernelmill show " + run.path + "` reads it");
}

/// Whether its latest session finished; not of a store that cannot be read now.
bool has_finished(const run_directory& run) {
  auto from = open_for_reading(run);
  if (!from) return false;
  std::string state;
  auto read = from->scan_openings(run.name, [&](wire::Record::Reader x) {
    state = x.getRun().getState().cStr();
    return true;
  });
  return read && state == "finished";
}

/// Ends the pause of a run in progress, which another process has; so `resume` of one that is not
/// paused changes nothing. False: there is none, or it is a head's, or more was asked.
expected<bool> goes_on_elsewhere(const invocation& in, const run_directory& run) {
  if (in.has("OVERRIDE") || in.has("--from-traces") || !watch::is_worked_on(run) ||
      is_marked_by_head(run.path))
    return false;
  auto done = watch::order_run(run, "resume");
  if (!done && done.error().category == "run_not_live") return false; // it has ended meanwhile
  KM_TRY(done);
  if (in.json)
    cli::print_json({{"run", run.name}, {"directory", run.path}, {"order", "resume"}});
  else
    cli::talk(run.name + " goes on");
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
  bool finished = !from_traces && has_finished(*found);
  if (finished && after->origins["log.level"] != "the command line")
    options.config.log.level = "warn";
  auto result = drive_run(in, std::move(options), finished);
  if (!result && result.error().category == "store_locked" && is_marked_by_head(directory))
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
      "kernelmill run quickstart --split dev run.dir=runs/held_out",
      "Later files and overrides win. The first Ctrl-C stops the run and keeps every committed "
      "turn. A second\n"
      "one ends it at once. `kernelmill config show --resolved --origin CONFIG...` shows the "
      "configuration of the run.",
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
