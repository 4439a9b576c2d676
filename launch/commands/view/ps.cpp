// `kernelmill ps` and `runs`: what is in progress, and what there is.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

std::string totals_text(const json& run) {
  std::string states, queues;
  for (const auto& [state, count] : run["states"].items())
    states += fmt::format("{}{} {}", states.empty() ? "" : ", ", count.get<uint64_t>(), state);
  for (const auto& q : run["queues"]) {
    if (q["waiting"].get<uint64_t>() == 0 && q["leased"].get<uint64_t>() == 0) continue;
    queues += fmt::format("; {}: {} waiting, {} given to workers", q["queue"].get<std::string>(),
                          q["waiting"].get<uint64_t>(), q["leased"].get<uint64_t>());
    if (q["state"] == "starved") queues += " (no worker takes them)";
  }
  return fmt::format("{}: {}, {} of {} ended, {}, {} live ({}){}\n",
                     one_line(run["run"].get<std::string>()), cell(run, "state"),
                     run["ended"].get<uint64_t>(), counted_cell(run, "episodes", "episode"),
                     counted_cell(run, "turns", "turn"), run["live"].get<uint64_t>(),
                     states.empty() ? "none" : states, queues);
}

std::string place_text(const json& row) {
  if (!row.contains("position")) return "-";
  auto result = position_cell(row);
  if (cli::plain_cells()) return count_cell(row, "position");
  if (row.contains("wait_seconds")) result += ", ~" + seconds_cell(row, "wait_seconds");
  return result;
}

expected<int> ps(const invocation& in) {
  auto query = list_query(in);
  if (in.has("RUN")) query["run"] = in.value("RUN");
  if (in.has("--limit")) {
    auto limit = in.integer("--limit", 1, 1'000'000);
    KM_TRY(limit);
    query["limit"] = static_cast<uint64_t>(*limit);
  }
  auto document = look(in, "ps", query);
  KM_TRY(document);
  if (in.json) {
    cli::print_json(*document);
    return 0;
  }
  if ((*document)["runs"].empty()) {
    cli::talk(asks_head(in) ? "no run of the head is in progress"
                            : "no run is in progress below " + in.value("--root"));
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : (*document)["episodes"])
    rows.push_back({cell(x, "run"), cell(x, "id"), cell(x, "state"), seconds_cell(x, "age_seconds"),
                    place_text(x), number_cell(x, "best_reward"), cell(x, "detail")});
  for (const auto& run : (*document)["runs"]) cli::print(totals_text(run));
  if (rows.empty())
    cli::talk((*document)["live"] == 0 ? "no episode is live" // a run is about to begin or to end
                                       : "no live episode matches");
  else
    cli::print("\n" +
               cli::format_table(
                   {"RUN", "EPISODE", "STATE", "FOR [s]>", "QUEUE>", "REWARD>", "DETAIL"}, rows));
  return 0;
}

// -- runs -----------------------------------------------------------------------------------------

std::string tags_cell(const json& x) {
  std::string result;
  for (const auto& tag : x.value("tags", json::array()))
    result += (result.empty() ? "" : " ") + one_line(tag.get<std::string>());
  return result.empty() ? "-" : result;
}

std::string progress_text(const json& x) {
  if (!x.contains("episodes")) return "-";
  if (cli::plain_cells()) return count_cell(x, "episodes");
  auto result = fmt::format("{}/{} {:.0f} %", count_cell(x, "ended"), count_cell(x, "episodes"),
                            100 * x.value("progress", 0.0));
  if (auto left = seconds_cell(x, "left_seconds"); left != "-") result += ", " + left + " left";
  return result;
}

/// How a run that has not finished goes on: one line for all, after the latest of them.
void tell_how_to_continue(const json& runs) {
  const json* latest = nullptr;
  uint64_t others = 0;
  for (const auto& x : runs) {
    if (x.value("next", std::string{}).empty() || !x.contains("began_at")) continue;
    others += latest != nullptr;
    if (latest == nullptr || x["began_at"] >= (*latest)["began_at"]) latest = &x;
  }
  if (latest == nullptr) return;
  cli::talk(one_line((*latest)["next"].get<std::string>()) +
            (others > 0 ? fmt::format("; {} other{} likewise", others, others == 1 ? "" : "s")
                        : std::string{}));
}

/// The states that runs are in, where one was asked for.
std::string states_text(const invocation& in) {
  if (in.value("--where").find("state") == std::string::npos) return {};
  auto all = look(in, "runs", json::object());
  if (!all) return {};
  std::set<std::string> states;
  for (const auto& x : (*all)["runs"]) states.insert(cell(x, "state"));
  return states.empty() ? std::string{} : "; the states here are " + joined(states);
}

expected<int> runs(const invocation& in) {
  auto document = look(in, "runs", list_query(in));
  KM_TRY(document);
  if (in.json) {
    cli::print_json(*document);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : (*document)["runs"])
    rows.push_back({run_cell(x), cell(x, "state"), progress_text(x), count_cell(x, "turns"),
                    count_cell(x, "accepted"), count_cell(x, "rejected"),
                    count_cell(x, "infrastructure"), number_cell(x, "reward", 3),
                    number_cell(x, "best_speedup_lower"), number_cell(x, "geomean_speedup"),
                    number_cell(x, "evidence"), seconds_cell(x, "seconds"), cell(x, "failure"),
                    tags_cell(x)});
  std::vector<std::string> headers{
      "RUN",     "STATE",       "EPISODES>", "TURNS>",    "ACCEPTED>", "REJECTED>", "INFRA>",
      "REWARD>", "BEST LOWER>", "GEOMEAN>",  "EVIDENCE>", "TIME [s]>", "WHY",       "TAGS"};
  if (cli::plain_cells()) { // for people EPISODES says it
    headers.insert(headers.begin() + 3, "ENDED>");
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].insert(rows[i].begin() + 3, count_cell((*document)["runs"][i], "ended"));
  }
  if (std::all_of(rows.begin(), rows.end(), [](const auto& x) { return x.back() == "-"; })) {
    headers.pop_back();
    for (auto& x : rows) x.pop_back();
  }
  if (rows.empty())
    cli::talk(in.has("--where") ? "no run matches" + states_text(in)
              : asks_head(in)   ? "the head has no run"
                                : "no runs in " + in.value("--root"));
  else
    cli::print(cli::format_table(headers, rows));
  tell_how_to_continue((*document)["runs"]);
  return 0;
}

} // namespace

cli::command ps_row() {
  return {
      "ps",
      "Lists the live episodes of runs in progress: states, places in queues, totals.",
      "kernelmill ps\nkernelmill ps first --where 'state=queued and age>60' --sort position\n"
      "kernelmill ps --head 10.0.0.1:7612 --json",
      "An episode that waits for its turn is `queued`, with its place and the estimated wait.\n"
      "Exit code 69 when RUN is not in progress.",
      {{"RUN",
        "Name of a run, or its directory. Default: all runs below --root.",
        false,
        false,
        completes::run,
        {}}},
      with_list_options({{"--limit", "N", "Shows the first N rows only.", "", false, {}, nothing}}),
      ps};
}

cli::command runs_row() {
  return {"runs",
          "Lists all runs: state, progress, reward, speedups, and why a run failed.",
          "kernelmill runs\nkernelmill runs --where 'state=failed' --sort=-began_at\n"
          "kernelmill runs --where 'tags=paper' -o csv\n"
          "kernelmill runs --head 10.0.0.1:7612 --json",
          "RUN is the folder, and the name that the run began with where it is another. REWARD is "
          "the mean of\nthe best rewards of ended episodes; BEST LOWER the lower bound of the best "
          "speedup; GEOMEAN the\ngeometric mean of the episodes' best speedups; EVIDENCE the mean "
          "score of the turns.",
          {},
          with_list_options({}),
          runs};
}

} // namespace kernelmill::commands
