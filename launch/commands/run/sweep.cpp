#include "launch/commands/run/sweep.hpp"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "launch/analysis/watch/views.hpp"
#include "launch/analysis/watch/world.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/run/run_driver.hpp"
#include "launch/commands/run/sweep_plan.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/sources.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

/// What the sweep has to do for a point of its grid.
enum class step : unsigned char { begin, go_on, nothing };

struct planned_run {
  sweep_point point;
  run_options options;
  step todo = step::begin;
};

const char* words_of(step x) {
  switch (x) {
    case step::go_on: return "goes on";
    case step::nothing: return "has finished";
    case step::begin: break;
  }
  return "new";
}

error of_run(const std::string& name, error why) {
  why.message = "of the run " + name + ": " + why.message;
  return why;
}

/// What is there of the run, if anything. Errors: "config_changed" when it is another experiment
/// of that name; "store_locked" when a process works on it; those of open_run().
expected<step> step_of(const run_options& options) {
  auto found = open_run(options.directory);
  if (!found) {
    // What a process left that was killed while it laid the run out is taken over.
    const auto& category = found.error().category;
    if (category == "not_found" || category == "run_torn") return step::begin;
    return tl::unexpected<error>{found.error()};
  }
  if (watch::is_worked_on(*found))
    return configuration_error("store_locked", "failed to sweep: a process runs " + found->path,
                               "wait for it, or end it: `kernelmill cancel " + found->path + "`");
  config_sources before;
  before.files = {found->config_file()};
  auto stored = load_config(before);
  KM_TRY(stored);
  if (config_digest(stored->config) != config_digest(options.config))
    return configuration_error(
        "config_changed", "failed to sweep: " + found->path + " began with another configuration",
        "give the sweep another name: run.name=NAME; `kernelmill config "
        "diff` shows what differs");
  return has_finished(*found) ? step::nothing : step::go_on;
}

expected<planned_run> plan_run(const invocation& in, config_sources sources, sweep_point point,
                               const std::filesystem::path& folder) {
  for (auto& word : point.overrides()) sources.overrides.push_back(std::move(word));
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  planned_run result;
  auto& options = result.options;
  options.config = std::move(loaded->config);
  KM_TRY(accept_terms(in, options.config));
  options.directory = (folder / point.name).string();
  options.config.run.name = point.name;
  options.config.run.dir = options.directory;
  options.config_json = kernelmill::to_json(options.config).dump(2);
  auto todo = step_of(options);
  KM_TRY(todo);
  result.todo = *todo;
  options.resume = *todo == step::go_on;
  result.point = std::move(point);
  return result;
}

/// The whole grid, so that what is wrong with its last run shows before its first begins.
expected<std::vector<planned_run>> plan_sweep(const invocation& in) {
  auto keys = read_sweep(in.list("--sweep"));
  KM_TRY(keys);
  auto sources = sources_of(in.list("CONFIG"));
  if (in.has("--split")) sources.overrides.push_back("tasks.split=" + in.value("--split"));
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  const auto& run = loaded->config.run;
  auto points = points_of(*keys, run.name.empty() ? stem_of_run(sources) : run.name);
  KM_TRY(points);
  std::error_code code;
  auto folder = run.dir.empty() ? std::filesystem::current_path(code) / "runs"
                                : std::filesystem::path{run.dir};
  std::vector<planned_run> result;
  for (auto& point : *points) {
    auto name = point.name;
    auto planned = plan_run(in, sources, std::move(point), folder);
    if (!planned) return tl::unexpected<error>{of_run(name, planned.error())};
    result.push_back(std::move(*planned));
  }
  return result;
}

// -- tables ---------------------------------------------------------------------------------------

std::vector<std::string> headers_of(const planned_run& first) {
  std::vector<std::string> result{"RUN"};
  for (const auto& [key, value] : first.point.values) result.push_back(key);
  return result;
}

std::vector<std::string> cells_of(const planned_run& x) {
  std::vector<std::string> result{x.point.name};
  for (const auto& [key, value] : x.point.values) result.push_back(one_line(value, 60));
  return result;
}

json values_json(const planned_run& x) {
  json result = json::object();
  for (const auto& [key, value] : x.point.values) result[key] = value;
  return result;
}

void print_plan(const invocation& in, const std::vector<planned_run>& runs) {
  auto headers = headers_of(runs.front());
  headers.emplace_back("STATE");
  std::vector<std::vector<std::string>> rows;
  json document = {{"runs", json::array()}};
  for (const auto& x : runs) {
    rows.push_back(cells_of(x));
    rows.back().emplace_back(words_of(x.todo));
    document["runs"].push_back({{"run", x.point.name},
                                {"directory", x.options.directory},
                                {"values", values_json(x)},
                                {"state", words_of(x.todo)}});
  }
  if (in.json)
    cli::print_json(document);
  else
    cli::print_all(cli::format_table(headers, rows));
}

/// A row of `runs` for the run of a point; of one that never began only its state.
json row_of_run(const planned_run& x) {
  auto root = std::filesystem::path{x.options.directory}.parent_path().string();
  auto view = watch::runs_view(watch::local_world(root), {{"run", x.options.directory}});
  json row = {{"run", x.point.name}, {"state", "not begun"}};
  if (view && !(*view)["runs"].empty()) row = (*view)["runs"][0];
  row["values"] = values_json(x);
  return row;
}

void print_results(const invocation& in, const std::vector<planned_run>& runs) {
  auto headers = headers_of(runs.front());
  for (const char* more : {"STATE", "EPISODES>", "TURNS>", "ACCEPTED>", "REJECTED>", "INFRA>",
                           "MEAN REWARD>", "BEST LOWER>", "GEOMEAN>", "TIME [s]>"})
    headers.emplace_back(more);
  std::vector<std::vector<std::string>> rows;
  json document = {{"runs", json::array()}};
  for (const auto& x : runs) {
    auto row = row_of_run(x);
    rows.push_back(cells_of(x));
    for (auto& cell : {cell(row, "state"), count_cell(row, "ended"), count_cell(row, "turns"),
                       count_cell(row, "accepted"), count_cell(row, "rejected"),
                       count_cell(row, "infrastructure"), number_cell(row, "reward", 3),
                       number_cell(row, "best_speedup_lower"), number_cell(row, "geomean_speedup"),
                       seconds_cell(row, "seconds")})
      rows.back().push_back(cell);
    document["runs"].push_back(std::move(row));
  }
  if (in.json)
    cli::print_json(document);
  else
    cli::print_all(cli::format_table(headers, rows));
}

expected<void> check_options(const invocation& in) {
  for (const char* option : {"--bundle", "--on"})
    if (in.has(option))
      return configuration_error("usage", fmt::format("failed to sweep: {} is for one run", option),
                                 "leave it out: `kernelmill bundle make RUN` makes a bundle of "
                                 "each run, and a sweep elsewhere begins on that machine");
  return {};
}

} // namespace

expected<int> run_sweep(const invocation& in) {
  KM_TRY(check_options(in));
  auto runs = plan_sweep(in);
  KM_TRY(runs);
  if (in.has("--dry-run")) {
    print_plan(in, *runs);
    return cli::exit_ok;
  }
  int result = cli::exit_ok;
  for (size_t i = 0; i < runs->size(); ++i) {
    auto& x = (*runs)[i];
    auto head = fmt::format("sweep: {} of {}, {}", i + 1, runs->size(), x.point.name);
    if (x.todo == step::nothing) {
      cli::talk(head + " has finished before");
      continue;
    }
    cli::talk(head);
    auto code = drive_run(in, x.options, told::progress);
    if (!code) return tl::unexpected<error>{of_run(x.point.name, code.error())};
    if (*code == cli::exit_ok) continue;
    if (result == cli::exit_ok) result = *code;
    if (*code > 128) break; // a signal ends the sweep, and not this run alone
  }
  print_results(in, *runs);
  if (result != cli::exit_ok)
    cli::talk("not every run has finished; the same command takes the sweep up");
  return result;
}

} // namespace kernelmill::commands
