// What `run`, `resume`, `fork` and sweeps have in common: driving one run and telling of it.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run/progress_display.hpp"
#include "launch/commands/run/run_driver.hpp"
#include "launch/commands/run/search_end.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/node/node.hpp"
#include "launch/node/run_rights.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"
#include "messages/json.hpp"
#include "storage/lineage/fork.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Times are the run's, not this session's: those of `runs`, `stats` and `status`.
json summary_json(wire::RunSummary::Reader x, const run_view* view) {
  auto result = kernelmill::to_json(capnp::DynamicStruct::Reader{x});
  json stages = json::object();
  if (view) {
    result["seconds"] = view->worked.seconds();
    for (const auto& [stage, sum] : view->stages) stages[stage] = sum.seconds;
    for (const auto& [part, seconds] : view->slots) stages["slot." + part] = seconds;
  } else {
    for (auto s : x.getStages()) stages[s.getName().cStr()] = s.getValue();
  }
  result["stages"] = stages;
  return result;
}

// A slot's spans, as the verdict's slot_seconds names them, for people.
std::string slot_words(const std::string& span) {
  static const std::map<std::string, std::string> words{{"task", "preparing tasks"},
                                                        {"process", "starting processes"},
                                                        {"load", "loading kernels"},
                                                        {"buffers", "making buffers"},
                                                        {"quiet", "timing the baseline alone"},
                                                        {"release", "ending processes"}};
  auto known = words.find(span);
  return known == words.end() ? span : known->second;
}

std::string slots_text(const run_view& view) {
  std::string result;
  for (const auto& [part, seconds] : view.slots)
    if (seconds > 0)
      result += fmt::format("{}{} {}", result.empty() ? "" : ", ", slot_words(part),
                            cli::format_seconds(seconds));
  return result.empty()
             ? result
             : cli::hanging("", 0, "summed over all evaluations, in their slots: " + result);
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
  return fmt::format("{}, {}, {}", counted(t.getGroups(), "group"),
                     counted(t.getEpisodes(), "episode"), counted(t.getTurns(), "turn"));
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
                          cli::format_seconds(view ? view->worked.seconds() : x.getSeconds()));
  result += fmt::format("{} accepted, {} rejected, {} infrastructure", t.getAccepted(),
                        t.getRejected(), t.getInfrastructure());
  if (t.getDropped() > 0) result += fmt::format(", {} dropped", t.getDropped());
  result += "\n" + not_timed_text(t.getNotTimed(), t.getUnpaid());
  for (auto alarm : x.getAlarms()) result += alarm_text(alarm.cStr());
  if (view) result += work_text(*view) + slots_text(*view);
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
  auto parent = fs::path{directory}.parent_path().string();
  auto width = directory.size() + std::string_view{"kernelmill report "}.size();
  std::string text = "next:";
  for (const auto& [command, says] :
       {std::pair{"kernelmill show " + directory,
                  "its episodes; " + directory + "/g0.e0.t0 is a turn"},
        {"kernelmill report " + directory, std::string{"its metrics by task"}},
        {"kernelmill page " + (parent.empty() ? "." : parent),
         std::string{"all runs in a browser"}}})
    text += fmt::format("\n  {:<{}}  {}", command, width, says);
  cli::talk(text);
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

} // namespace

std::string shown_path(const std::string& path) {
  std::error_code code;
  auto relative = fs::path{path}.lexically_relative(fs::current_path(code)).string();
  return relative.empty() || relative.starts_with("..") ? path : relative;
}

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

expected<int> drive_run(const invocation& in, run_options options, told how) {
  bool was_finished = how == told::end_of_done;
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
    if (wanted.request_stop())
      display.say("ending: `kernelmill cancel` asked for it; no new turns begin");
  };
  std::stop_callback tell{signals.token(), [&display] {
                            display.say("ending: turns at a compiler or a slot have 8 s to finish, "
                                        "no new ones begin; press Ctrl-C again to end at once");
                          }};
  if (!in.json) // stderr is for one document then
    interrupt::say_at_second("ended at once: committed turns are kept; continue with: kernelmill "
                             "resume " +
                             shown_path(options.directory));
  if (!in.json && !was_finished) {
    options.on_progress = [&](const progress& x) { display.update(x); };
    options.on_warning = [&](std::string_view line) { display.say(line); };
  }
  std::optional<run_rights> rights;
  options.on_start = [&] {
    rights = stored_rights(options);
    if (was_finished) return;
    cli::talk((options.resume ? "resuming " : "run ") +
              name_with_folder(options.config.run.name, options.directory) + " in " +
              shown_path(options.directory));
    for (const auto& line : lines_of(*rights)) cli::talk(line);
  };
  auto summary = run_node(options, wanted.get_token());
  display.finish();
  KM_TRY(summary);
  auto opened = summary->open();
  auto run = open_run(options.directory);
  auto view = run ? view_run(*run) : expected<run_view>{tl::unexpected<error>{run.error()}};
  std::optional<search_end> found;
  if (run && options.config.search.on() && opened->getOutcome() == "finished") {
    auto ended = end_search(*run, options.config, shown_path(options.directory));
    KM_TRY(ended);
    found = std::move(*ended);
  }
  if (how == told::progress) {
    // nop
  } else if (in.json) {
    auto document = summary_json(*opened, view ? &*view : nullptr);
    if (found) document["search"] = found->document;
    if (view) document["tasks"] = to_json(*view)["tasks"];
    if (rights) document["licences"] = to_json(*rights);
    cli::print_json(document);
  } else if (was_finished && opened->getOutcome() == "finished") {
    cli::print(name_with_folder(options.config.run.name, options.directory) + " " +
               finished_before(*opened));
  } else {
    cli::print(summary_text(*opened, view ? &*view : nullptr));
  }
  if (found && !in.json && how != told::progress) cli::print("\n" + found->text);
  tell_outcome(in, *opened);
  if (found) return found->found ? cli::exit_ok : cli::exit_quality;
  if (opened->getOutcome() == "finished" && options.config.policy.kind == "scripted" &&
      !options.resume && how == told::all)
    tell_next(shown_path(options.directory));
  return outcome_code(*opened);
}

} // namespace kernelmill::commands
