// `kernelmill stats` and `lineage`: what a run's turns came to, and how candidates follow each
// other.

#include <map>

#include <fmt/format.h>

#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/candidate_tree.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

std::string percent(const json& share) {
  return share.is_number() ? cli::percent_or_plain(share.get<double>()) : "-";
}

std::string bar(const json& share) {
  constexpr double width = 30;
  auto n = share.is_number() ? static_cast<size_t>(share.get<double>() * width + 0.5) : 0;
  return std::string(std::min<size_t>(n, static_cast<size_t>(width)), '#');
}

std::string open_text(const json& x) {
  auto open = x.value("open_turns", uint64_t{0});
  return open > 0 ? "; " +
                        counted(open, "turn asked for no verdict and is",
                                "turns asked for no verdict and are") +
                        " in no share"
                  : "";
}

/// A table whose last cells are bars; for programs without them.
void print_barred(std::vector<std::string> headers, std::vector<std::vector<std::string>> rows) {
  if (cli::prints_tables_alone())
    for (auto& row : rows) row.pop_back();
  else
    headers.emplace_back();
  cli::print(cli::format_table(headers, rows) + "\n");
}

expected<int> stats(const invocation& in) {
  auto x = look(in, "stats", {{"run", in.value("RUN")}});
  KM_TRY(x);
  if (in.json) {
    cli::print_json(*x);
    return 0;
  }
  const auto& e = (*x)["episodes"];
  cli::print(fmt::format("{}: {}, {}, {} ended ({} accepted, {} rejected, {} "
                         "infrastructure){}\n\n",
                         run_cell(*x), cell(*x, "state"), counted_cell(*x, "turns", "turn"),
                         counted_cell(e, "ended", "episode"), count_cell(e, "accepted"),
                         count_cell(e, "rejected"), count_cell(e, "infrastructure"),
                         open_text(*x)));
  std::vector<std::vector<std::string>> rows;
  for (const auto& s : (*x)["funnel"])
    rows.push_back({cell(s, "step"), count_cell(s, "turns"), percent(s["share"]), bar(s["share"])});
  print_barred({"TURNS THAT ARE", "COUNT>", "SHARE [percent]>"}, std::move(rows));
  rows.clear();
  for (const auto& s : (*x)["time"])
    rows.push_back({cell(s, "stage"), seconds_cell(s, "work_seconds"), percent(s["share"]),
                    seconds_cell(s, "mean_work_seconds"), seconds_cell(s, "mean_wait_seconds"),
                    bar(s["share"])});
  print_barred({"STAGE", "WORK [s]>", "SHARE [percent]>", "A TURN WORKS [s]>", "A TURN WAITS [s]>"},
               std::move(rows));
  rows.clear();
  for (const auto& [category, count] : (*x)["categories"].items())
    rows.push_back({one_line(category), fmt::format("{}", count.get<uint64_t>())});
  cli::print(cli::format_table({"VERDICT", "TURNS>"}, rows));
  cli::print(
      fmt::format("\nmean best reward {}, best speedup lower {}{}, geomean speedup {},\n"
                  "evidence {}, near misses: {}, {} prompt and {} completion tokens, "
                  "{} of working time\n",
                  number_cell(*x, "mean_reward", 3), number_cell(*x, "best_speedup_lower"),
                  x->value("best_turn", "").empty() ? "" : " (" + cell(*x, "best_turn") + ")",
                  number_cell(*x, "geomean_speedup"), number_cell(*x, "evidence"),
                  count_cell(*x, "near_misses"), count_cell(*x, "prompt_tokens"),
                  count_cell(*x, "completion_tokens"), seconds_cell(*x, "wall_seconds")));
  return 0;
}

// -- lineage --------------------------------------------------------------------------------------

std::string node_text(const json& x) {
  auto result = fmt::format("t{} {}", x["turn"].get<uint64_t>(), cell(x, "category"));
  if (auto branch = x.value("branch", ""); !branch.empty()) result = branch + "." + result;
  if (x.value("shared", false)) result += " (shared)";
  if (auto how = x.value("transition", ""); !how.empty()) result += " (" + one_line(how) + ")";
  if (!x["reward"].is_null()) result += ", reward " + number_cell(x, "reward", 3);
  if (x["speedup"].is_object()) result += ", speedup " + number_cell(x["speedup"], "estimate");
  auto sha = x.value("candidate_sha256", "");
  if (!sha.empty()) result += "  " + one_line(sha.substr(0, 12));
  return result;
}

/// The turns of an episode and of its forks in one list; a fork's first turn names its run.
void add_branches(json& turns, const json& branches) {
  for (const auto& branch : branches) {
    bool first = true;
    for (auto x : branch["turns"]) {
      if (first) x["branch"] = cell(branch, "run") + "/" + cell(branch, "episode");
      first = false;
      turns.push_back(std::move(x));
    }
    add_branches(turns, branch["branches"]);
  }
}

json all_turns(const json& document) {
  auto result = document["turns"];
  if (document.contains("branches")) add_branches(result, document["branches"]);
  return result;
}

/// "first/g0.e0", and where it was forked.
std::string title_of(const json& x) {
  auto result = cell(x, "run") + "/" + cell(x, "episode");
  if (!x.contains("fork") || x["fork"].is_null()) return result;
  const auto& fork = x["fork"];
  return result + fmt::format(", a fork of {}/{}.t{}", cell(fork, "run"), cell(fork, "episode"),
                              fork["turns"].get<uint64_t>());
}

using children_map = std::map<std::string, std::vector<size_t>>;

void print_tree(const json& turns, const children_map& children, const std::string& of,
                const std::string& indent) {
  auto found = children.find(of);
  if (found == children.end()) return;
  for (size_t n = 0; n < found->second.size(); ++n) {
    const auto& x = turns[found->second[n]];
    bool last = n + 1 == found->second.size();
    cli::print(indent + (last ? "└─ " : "├─ ") + node_text(x) + "\n");
    // Each turn stands below the one that it came from. A long line of turns ends up in one column.
    constexpr size_t deepest = 36; // columns
    auto below = children.find(x["id"].get<std::string>());
    bool line = below != children.end() && below->second.size() == 1 && last;
    bool deep = cli::columns_of(indent) >= deepest && line;
    print_tree(turns, children, x["id"].get<std::string>(),
               indent + (deep   ? ""
                         : last ? "   "
                                : "│  "));
  }
}

std::string quoted(const std::string& text) {
  return '"' + escaped(text) + '"';
}

void print_dot(const json& document) {
  cli::print("digraph " + quoted(title_of(document)) +
             " {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n");
  for (const auto& x : all_turns(document)) {
    auto outcome = x["outcome"].get<std::string>();
    const char* colour = outcome == "accepted"   ? "palegreen"
                         : outcome == "rejected" ? "mistyrose"
                         : outcome == "open"     ? "lightyellow"
                                                 : "lightgrey";
    cli::print(fmt::format("  {} [label={}, style=filled, fillcolor={}];\n",
                           quoted(x["id"].get<std::string>().substr(0, 12)), quoted(node_text(x)),
                           colour));
    auto parent = x["parent"].get<std::string>();
    if (!parent.empty())
      cli::print(fmt::format("  {} -> {};\n", quoted(parent.substr(0, 12)),
                             quoted(x["id"].get<std::string>().substr(0, 12))));
  }
  cli::print("}\n");
}

expected<int> lineage(const invocation& in) {
  if (in.has("--tree") && in.has("--dot"))
    return configuration_error("usage", "failed to run 'lineage': --tree and --dot are both given",
                               "give one of them");
  auto x = look(in, "lineage", {{"what", in.value("EPISODE")}});
  KM_TRY(x);
  if (in.json) {
    cli::print_json(*x);
    return 0;
  }
  if (in.has("--dot")) {
    print_dot(*x);
    return 0;
  }
  const auto turns = all_turns(*x);
  children_map children;
  std::map<std::string, bool> known;
  for (const auto& t : turns) known[t["id"].get<std::string>()] = true;
  for (size_t i = 0; i < turns.size(); ++i) {
    auto parent = turns[i]["parent"].get<std::string>();
    children[known.contains(parent) ? parent : std::string{}].push_back(i);
  }
  cli::print(title_of(*x) + "\n");
  print_tree(turns, children, {}, "");
  if (auto tree = candidate_tree(*x); !tree.empty()) cli::print("\n" + tree);
  return 0;
}

} // namespace

cli::command stats_row() {
  return {
      "stats",
      "Shows the funnel of a run's turns and where its time went.",
      "kernelmill stats first\nkernelmill stats first --json",
      "Turns that have the format, that were built, that are correct, that were timed, and "
      "that are faster than\nthe baseline by the lower bound. WORK is the time of all turns in a "
      "stage, without their waiting for a worker;\nturns work side by side, so the sum may be "
      "longer than the run.",
      {{"RUN", "Name of a run, or its directory.", true, false, completes::run, {}}},
      with_view_options({}),
      stats};
}

cli::command lineage_row() {
  return {"lineage",
          "Shows how an episode's turns and candidates derive from each other.",
          "kernelmill lineage first/g3.e1\nkernelmill lineage first/g3.e1 --dot | dot -Tsvg",
          "Forks of the episode are branches of it. Forks below --root or beside its run are "
          "found. Candidates "
          "have ids for\n`kernelmill candidate`: of each one the list shows the role, the last "
          "status, the "
          "speedup, the kind of patch,\nwhether it is the best one or the active one, and which "
          "turn and "
          "tool made it.",
          {{"EPISODE", "An episode as RUN/g3.e1.", true, false, completes::run, {}}},
          with_view_options({flag("--tree", "Prints a tree. This is the default."),
                             flag("--dot", "Prints a graph for Graphviz.")}),
          lineage};
}

} // namespace kernelmill::commands
