// `kernelmill status`, `cancel` and `pause`: of a head, or of a run of this machine.

#include <fmt/format.h>

#include "launch/analysis/watch/world.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

expected<int> order(const invocation& in, const std::string& verb, const std::string& said) {
  if (asks_head(in)) {
    auto answer = ask(in, verb, in.value("RUN"));
    KM_TRY(answer);
    if (in.json)
      cli::print_json(*answer);
    else
      cli::talk(said + " " + in.value("RUN"));
    return cli::exit_ok;
  }
  auto run = find_run(in.value("RUN"), in.value("--root"));
  KM_TRY(run);
  KM_TRY(watch::order_run(*run, verb));
  if (in.json)
    cli::print_json({{"run", run->name}, {"directory", run->path}, {"order", verb}});
  else
    cli::talk(said + " " + run->name);
  return cli::exit_ok;
}

expected<int> cancel(const invocation& in) {
  return order(in, "cancel", "cancelling");
}

expected<int> pause(const invocation& in) {
  return order(in, "pause", "paused");
}

// -- status ---------------------------------------------------------------------------------------

std::string status_line(const json& x) {
  if (!x.contains("episodes")) return fmt::format("{}: {}\n", run_cell(x), cell(x, "state"));
  return fmt::format("{}: {}; {} of {} ended, {}, {} accepted, {} rejected, {} "
                     "infrastructure, in {}\n",
                     run_cell(x), cell(x, "state"), count_cell(x, "ended"),
                     counted_cell(x, "episodes", "episode"), counted_cell(x, "turns", "turn"),
                     count_cell(x, "accepted"), count_cell(x, "rejected"),
                     count_cell(x, "infrastructure"), seconds_cell(x, "seconds"));
}

/// RUN, or all that are in progress.
expected<std::vector<std::string>> runs_meant(const invocation& in) {
  if (in.has("RUN")) return std::vector{in.value("RUN")};
  auto live = look(in, "ps", {{"limit", uint64_t{1}}});
  KM_TRY(live);
  std::vector<std::string> result;
  for (const auto& x : (*live)["runs"]) result.push_back(x["directory"]);
  return result;
}

expected<int> local_status(const invocation& in) {
  auto names = runs_meant(in);
  KM_TRY(names);
  auto rows = json::array();
  for (const auto& name : *names) {
    auto document = look(in, "runs", {{"run", name}});
    KM_TRY(document);
    for (auto& x : (*document)["runs"]) rows.push_back(std::move(x));
  }
  if (in.json) {
    cli::print_json({{"root", in.value("--root")}, {"runs", std::move(rows)}});
    return cli::exit_ok;
  }
  for (const auto& x : rows) {
    cli::print(status_line(x));
    if (auto why = cell(x, "failure"); why != "-") cli::print(cli::hanging("  why: ", 7, why));
    for (const char* key : {"failure_hint", "next"})
      if (auto next = cell(x, key); next != "-") cli::print(cli::hanging("  next: ", 8, next));
    if (x["state"] == "paused")
      cli::talk("`kernelmill resume " + cell(x, "directory") + "` ends the pause");
  }
  if (rows.empty())
    cli::talk("no run is in progress below " + in.value("--root") +
              "; `kernelmill runs` lists all, and --head ADDR:PORT asks a head");
  return cli::exit_ok;
}

expected<int> status(const invocation& in) {
  if (!asks_head(in)) return local_status(in);
  if (in.has("RUN"))
    return configuration_error(
        "usage", "failed to show '" + in.value("RUN") + "': with a head `status` takes no run",
        "`kernelmill ps " + in.value("RUN") + " --head ADDR:PORT` shows that one");
  return head_status(in);
}

cli::argument_spec run_word(const char* doc, bool required) {
  return {"RUN", doc, required, false, completes::run, {}};
}

} // namespace

cli::command status_row() {
  return {
      "status",
      "Shows the runs in progress and where they stand; with --head its nodes, queues and runs.",
      "kernelmill status\nkernelmill status first\nkernelmill status --head 10.0.0.1:7612",
      "With RUN it shows that one, in progress or not. Exit code 69 when the head cannot be "
      "reached.",
      {run_word("Name of a run, or its directory. Default: those in progress below --root.",
                false)},
      with_view_options({}),
      status};
}

cli::command cancel_row() {
  return without_tables(
      {"cancel",
       "Ends a run as Ctrl-C does. Committed turns are kept.",
       "kernelmill cancel first\nkernelmill cancel first --head 10.0.0.1:7612",
       "`kernelmill resume first` continues it, of a head with --head ADDR:PORT. Exit code 69 "
       "when the run is not in progress.",
       {run_word("Name of a run, or its directory; of a head its name.", true)},
       with_view_options({}),
       cancel});
}

cli::command pause_row() {
  return without_tables(
      {"pause",
       "Pauses a run: no new episodes start.",
       "kernelmill pause first\nkernelmill pause first --head 10.0.0.1:7612",
       "Episodes in progress continue, so nothing is lost. `kernelmill resume first` ends the "
       "pause, of a head with\n--head ADDR:PORT. Exit code 69 when the run is not in progress.",
       {run_word("Name of a run, or its directory; of a head its name.", true)},
       with_view_options({}),
       pause});
}

} // namespace kernelmill::commands
