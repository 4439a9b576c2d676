// `kernelmill query`: turns of one or many runs by a condition.

#include <filesystem>

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "launch/analysis/study/turn_query.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/fork.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;
using study::turn_query;
using study::turn_question;

constexpr int64_t rows_of_a_table = 1000, rows_of_a_sort = 10'000;

const std::vector<std::string>& table_fields() {
  static const std::vector<std::string> all{"name",    "task",        "category",
                                            "reward",  "speedup",     "speedup.low",
                                            "seconds", "code_sha256", "model"};
  return all;
}

/// "a,b" of --fields.
std::vector<std::string> field_words(const std::string& text) {
  std::vector<std::string> result;
  for (size_t at = 0; at <= text.size();) {
    auto comma = std::min(text.find(',', at), text.size());
    auto word = text.substr(at, comma - at);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    if (!word.empty()) result.push_back(word);
    at = comma + 1;
  }
  return result;
}

/// Runs that are named, and all runs within folders that are.
expected<std::vector<run_directory>> runs_of(const invocation& in) {
  std::vector<run_directory> result;
  auto add = [&](run_directory x) {
    for (const auto& known : result)
      if (known.path == x.path) return;
    result.push_back(std::move(x));
  };
  auto names = in.has("RUN") ? in.list("RUN") : std::vector<std::string>{in.value("--root")};
  for (const auto& name : names) {
    auto one = find_run(name, in.value("--root"));
    if (one) {
      add(std::move(*one));
      continue;
    }
    auto inside = list_runs(name);
    if (inside.empty()) return tl::unexpected<error>{one.error()};
    for (const auto& x : inside) {
      auto found = find_run(name + "/" + x, name);
      KM_TRY(found);
      add(std::move(*found));
    }
  }
  return result;
}

expected<turn_question> question_of(const invocation& in) {
  turn_question result;
  result.where = in.value("EXPR");
  result.sort = in.value("--sort");
  result.fields = in.has("--fields") ? field_words(in.value("--fields"))
                  : in.json          ? study::short_fields()
                                     : table_fields();
  if (result.fields.empty())
    return configuration_error("usage", "failed to run 'query': --fields names none",
                               "such as --fields name,reward,speedup.low");
  if (in.has("--limit")) {
    auto limit = in.integer("--limit", 1, 100'000'000);
    KM_TRY(limit);
    result.limit = static_cast<uint64_t>(*limit);
  } else if (!result.sort.empty()) {
    result.limit = rows_of_a_sort;
  } else if (!in.json) {
    result.limit = rows_of_a_table;
  }
  return result;
}

expected<void> read_run(turn_query& by, const run_directory& run, const turn_query::row_taker& to) {
  auto from = open_for_reading(run);
  KM_TRY(from);
  artifact_store artifacts{run.artifacts};
  study::turn_source of{run.name, &artifacts, {}, 0};
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  if (auto fork = fork_of(*manifest)) of.shared_turns = fork->turns;
  for (const auto& task : manifest->value("tasks", json::array()))
    if (task.contains("split"))
      of.splits[task.value("id", std::string{})] = task.value("split", std::string{});
  return by.read(*from, of, to);
}

std::string shown(const json& x) {
  if (x.is_null()) return "-";
  if (x.is_number_float()) return fmt::format("{:.4g}", x.get<double>());
  return x.is_string() ? one_line(x.get<std::string>(), 4000) : x.dump();
}

std::string table_of(const std::vector<json>& rows, const std::vector<std::string>& fields) {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> cells;
  for (const auto& x : fields) {
    bool number = false;
    for (const auto& f : study::turn_fields())
      number |= f.name == x && f.kind == std::string_view{"number"};
    headers.push_back(x + (number ? ">" : ""));
  }
  for (const auto& row : rows) {
    auto& line = cells.emplace_back();
    for (const auto& x : fields) {
      auto text = shown(row[x]);
      line.push_back(x == "code_sha256" ? text.substr(0, 12) : text);
    }
  }
  return cli::format_table(headers, cells);
}

void say_count(const turn_query& by, size_t runs, bool all) {
  if (by.given() == 0)
    cli::talk(
        fmt::format("none of {} of {} matches", counted(by.turns(), "turn"), counted(runs, "run")));
  else if (!all)
    cli::talk(fmt::format("shown: {} of the rows; --limit N shows more", by.given()));
}

expected<int> query(const invocation& in) {
  auto what = question_of(in);
  KM_TRY(what);
  auto by = turn_query::parse(*what);
  KM_TRY(by);
  auto runs = runs_of(in);
  KM_TRY(runs);
  std::vector<json> rows;
  auto to = [&](json row) -> expected<void> {
    if (!in.json) {
      rows.push_back(std::move(row));
      return {};
    }
    cli::print(cli::line_text(row));
    if (std::ferror(stdout)) return infrastructure_error("io_error", "failed to write to stdout");
    return {};
  };
  auto all = [&]() -> expected<void> {
    for (const auto& run : *runs) {
      if (by->is_full()) break;
      KM_TRY(read_run(*by, run, to));
    }
    return by->finish(to);
  };
  auto done = all();
  if (!done && std::ferror(stdout))
    return 0; // its reader went away: the end of the program says so
  KM_TRY(done);
  if (!in.json && !rows.empty()) cli::print(table_of(rows, what->fields));
  say_count(*by, runs->size(), in.has("--limit") || by->given() < what->limit || what->limit == 0);
  return 0;
}

} // namespace

cli::command query_row() {
  return {
      "query",
      "Lists the turns of runs that match a condition.",
      "kernelmill query 'accepted and speedup.low > 2 and task ~ \"level1/*\"'\n"
      "kernelmill query 'not built and log ~ undeclared' runs/first runs/second\n"
      "kernelmill query 'best and paid' --sort=-reward --limit 10 --json",
      "A condition joins comparisons with and, or, not and parentheses. = and != compare texts or "
      "numbers, < <= > >= numbers;\n"
      "~ looks for a text within another, or, with * or ?, for a pattern that the whole text has. "
      "A "
      "flag stands alone.\n"
      "A turn without a value matches != alone. With --json each row is one line. The fields:\n" +
          study::fields_help(),
      {{"EXPR", "The condition; '' takes all turns.", true, false, nothing, {}},
       {"RUN",
        "Names of runs, their directories, or folders of runs. Default: all below --root.",
        false,
        true,
        completes::run,
        {}}},
      {{"--fields", "LIST", "Fields to show, with commas between.", "", false, {}, nothing},
       {"--sort",
        "KEY",
        "Sorts by a field; -KEY sorts the other way (--sort=-reward). Keeps 10000 rows without "
        "--limit.",
        "",
        false,
        {},
        nothing},
       {"--limit",
        "N",
        "Shows the first N rows only. Default: 1000 in a table, all with --json.",
        "",
        false,
        {},
        nothing},
       runs_root()},
      query};
}

} // namespace kernelmill::commands
