#include "launch/commands/view/compare_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "launch/analysis/study/paired.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
using cells = std::vector<std::vector<std::string>>;

constexpr size_t longest_value = 300;

/// One value of either side.
std::string value_cell(const json& x) {
  if (x.is_null()) return "-";
  if (x.is_number_float()) return fmt::format("{:.4g}", x.get<double>());
  if (x.is_string()) return one_line(x.get<std::string>(), longest_value);
  if (x.is_object() && x.contains("low") && x.contains("estimate"))
    return value_cell(x["estimate"]) + " [" + value_cell(x["low"]) + ", " + value_cell(x["high"]) +
           "]";
  return one_line(x.dump(-1, ' ', false, json::error_handler_t::replace), longest_value);
}

std::string title(const std::string& text, bool colour) {
  return "\n" + cli::paint(colour, cli::colour::bold, text) + "\n";
}

std::string coloured_diff(const std::string& diff, bool colour) {
  std::string result;
  for (size_t at = 0; at < diff.size();) {
    auto end = std::min(diff.find('\n', at), diff.size());
    auto line = cli::clean(diff.substr(at, end - at));
    auto how = line.starts_with("+")   ? cli::colour::green
               : line.starts_with("-") ? cli::colour::red
               : line.starts_with("@") ? cli::colour::dim
                                       : cli::colour::none;
    result += cli::paint(colour, how, line) + "\n";
    at = end + 1;
  }
  return result;
}

/// "overlap", "B is faster", "+0.25".
std::string remark(const json& x) {
  if (x.contains("overlap") && !x["overlap"].is_null()) {
    if (x["overlap"].get<bool>()) return "the intervals overlap";
    return x["faster"] == "a" ? "A is faster" : "B is faster";
  }
  if (x.contains("difference") && x["difference"].is_number())
    return fmt::format("{:+.4g}", x["difference"].get<double>());
  return {};
}

std::string values_table(const json& values) {
  cells rows;
  bool remarks = false;
  for (const auto& x : values) {
    rows.push_back(
        {one_line(x["key"].get<std::string>()), value_cell(x["a"]), value_cell(x["b"]), remark(x)});
    remarks |= !rows.back().back().empty();
  }
  std::vector<std::string> head{"", "A", "B", "B AGAINST A"};
  if (!remarks) {
    head.pop_back();
    for (auto& row : rows) row.pop_back();
  }
  return cli::format_table(head, rows);
}

std::string groups_text(const json& groups, bool colour) {
  std::string result, equal;
  for (const auto& x : groups) {
    auto name = x["group"].get<std::string>();
    // What is equal and shown anyhow are measurements whose intervals overlap.
    if (x["equal"].get<bool>())
      equal += (equal.empty() ? "" : ", ") + name +
               (x["values"].empty() ? "" : " within their intervals");
    if (x["values"].empty() && x["equal"].get<bool>()) continue;
    result += title(name, colour);
    if (!x["values"].empty()) result += values_table(x["values"]);
    result += coloured_diff(x["diff"].get<std::string>(), colour);
  }
  return result + (equal.empty() ? "" : "\nequal: " + equal + "\n");
}

std::string best_text(const json& best, bool colour) {
  if (best.is_null()) return {};
  return title(fmt::format("best turns: A {}, B {}", cell(best, "a"), cell(best, "b")), colour) +
         groups_text(best["groups"], colour);
}

// -- episodes and groups --------------------------------------------------------------------------

std::string turn_cell(const json& x) {
  if (x.is_null()) return "-";
  auto result = cell(x, "category");
  if (!x["reward"].is_null()) result += ", reward " + value_cell(x["reward"]);
  if (!x["speedup"].is_null()) result += ", speedup " + value_cell(x["speedup"]);
  return result;
}

std::string episodes_text(const json& x, bool colour) {
  cells rows;
  for (const auto& t : x["turns"])
    rows.push_back({"t" + t["turn"].dump(), turn_cell(t["a"]), turn_cell(t["b"]),
                    t["same_code"].get<bool>() ? "same" : "differs"});
  auto result = x["values"].empty() ? std::string{} : "\n" + values_table(x["values"]);
  return result + "\n" + cli::format_table({"TURN", "A", "B", "CODE"}, rows) +
         best_text(x["best"], colour);
}

std::string member_cell(const json& x) {
  if (x.is_null()) return "-";
  return fmt::format("{}, return {}, advantage {}", cell(x, "outcome"), value_cell(x["return"]),
                     value_cell(x["advantage"]));
}

std::string member_groups_text(const json& x, bool colour) {
  cells rows;
  for (const auto& m : x["members"])
    rows.push_back({"e" + m["member"].dump(), member_cell(m["a"]), member_cell(m["b"])});
  auto result = x["values"].empty() ? std::string{} : "\n" + values_table(x["values"]);
  return result + "\n" + cli::format_table({"MEMBER", "A", "B"}, rows) +
         best_text(x["best"], colour);
}

// -- runs -----------------------------------------------------------------------------------------

/// "task_geomean_speedup" as people read it; "fast_1.5" is a name of the benchmark.
std::string words_of(std::string name) {
  if (!name.starts_with("fast_")) std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string no_interval_text(const json& row) {
  if (row["no_interval"] == "few_tasks") return fmt::format("needs {} tasks", study::least_tasks);
  return row["no_interval"] == "no_spread" ? "all tasks differ by as much" : "-";
}

std::string statistics_table(const json& statistics) {
  cells rows;
  for (const auto& x : statistics) {
    bool ratio = x["scale"] == "ratio";
    auto number = [&](const char* key) {
      return x[key].is_null() ? std::string{"-"} : fmt::format("{:.4g}", x[key].get<double>());
    };
    auto interval = x["low"].is_null() ? no_interval_text(x)
                                       : "[" + number("low") + ", " + number("high") + "]";
    auto difference = x["difference"].is_null() ? "-"
                      : ratio                   ? "x" + number("difference")
                              : fmt::format("{:+.4g}", x["difference"].get<double>());
    rows.push_back({one_line(words_of(cell(x, "metric"))), number("a"), number("b"), difference,
                    interval, x["tasks"].dump()});
  }
  return cli::format_table({"MEAN OF TASKS", "A>", "B>", "B AGAINST A>", "95 % INTERVAL", "TASKS>"},
                           rows);
}

std::string wins_table(const json& wins) {
  cells rows;
  for (const auto& x : wins)
    rows.push_back({words_of(cell(x, "by")), x["wins"].dump(), x["losses"].dump(), x["ties"].dump(),
                    fmt::format("{:.3g}", x["p"].get<double>())});
  return cli::format_table({"TASKS BY", "B WINS>", "B LOSES>", "TIES>", "SIGN TEST P>"}, rows);
}

std::string side_cell(const json& x) {
  return fmt::format("{}/{} right, reward {}, best speedup {}", x["correct"].dump(),
                     x["episodes"].dump(), value_cell(x["reward"]), value_cell(x["best_speedup"]));
}

std::string tasks_table(json rows_of_tasks, size_t count) {
  auto size = [](const json& x) {
    return x["difference"].is_number() ? std::abs(x["difference"].get<double>()) : -1;
  };
  std::stable_sort(rows_of_tasks.begin(), rows_of_tasks.end(),
                   [&](const json& a, const json& b) { return size(a) > size(b); });
  cells rows;
  for (const auto& x : rows_of_tasks) {
    if (rows.size() == count) break;
    rows.push_back(
        {cell(x, "task"), side_cell(x["a"]), side_cell(x["b"]),
         x["difference"].is_null() ? "-" : fmt::format("{:+.4g}", x["difference"].get<double>()),
         cell(x, "faster")});
  }
  auto result = cli::format_table({"TASK", "A", "B", "REWARD>", "FASTER"}, rows);
  if (rows_of_tasks.size() > count)
    result += fmt::format("{} of {} tasks, those that differ most; --limit N shows more\n", count,
                          rows_of_tasks.size());
  return result;
}

std::string tasks_line(const json& x) {
  auto tasks = [&](const char* key, const char* words) {
    return x[key].empty() ? std::string{} : fmt::format("; {}: {}", words, x[key].size());
  };
  auto result = fmt::format("in both: {}", x["compared"].dump());
  if (x["held_out"].get<bool>()) result += " (of the split dev)";
  return result + tasks("only_a", "in A only") + tasks("only_b", "in B only") +
         tasks("changed", "left out since their files differ") + "\n";
}

std::string left_out_line(const char* name, const json& x) {
  return fmt::format("{}: {}; left out: {} lost to the infrastructure, {} open\n", name,
                     counted(x["episodes"].get<uint64_t>(), "episode"), x["infrastructure"].dump(),
                     x["open"].dump());
}

std::string runs_text(const json& x, bool colour, size_t tasks) {
  std::string result;
  if (!x["configuration"].empty())
    result += title("configuration", colour) + values_table(x["configuration"]);
  if (!x["environment"].empty())
    result += title("environment", colour) + values_table(x["environment"]);
  result += title("tasks", colour) + tasks_line(x["tasks"]) +
            left_out_line("A", x["left_out"]["a"]) + left_out_line("B", x["left_out"]["b"]) + "\n" +
            statistics_table(x["statistics"]) + "\n" + wins_table(x["wins"]) + "\n" +
            tasks_table(x["by_task"], tasks);
  for (const auto& note : x["notes"]) result += "\nnote: " + note.get<std::string>() + "\n";
  return result;
}

} // namespace

std::string comparison_text(const json& x, bool colour, size_t tasks) {
  auto result = fmt::format("A  {}\nB  {}\n", cell(x["a"], "name"), cell(x["b"], "name"));
  auto kind = x["kind"].get<std::string>();
  if (kind == "runs") return result + runs_text(x, colour, tasks);
  if (kind == "groups") return result + member_groups_text(x, colour);
  if (kind == "episodes") return result + episodes_text(x, colour);
  return result + groups_text(x["groups"], colour);
}

} // namespace kernelmill::commands
