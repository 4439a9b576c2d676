// `kernelmill candidate show` and `candidate diff`: sources of an episode's candidates, for people.

#include <algorithm>

#include "actors/episode/patch/make_diff.hpp"
#include "launch/analysis/watch/candidates.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/commands/view/candidate_tree.hpp"
#include "messages/base/json_value.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

/// The candidates of one episode, with what their sources are read from.
struct episode_candidates {
  std::vector<Message<wire::Record>> turns;
  candidate_graph graph;
  json documents;
  artifact_store artifacts;
  std::string name;

  expected<json> read(const std::string& id) const {
    const auto* found = graph.find(id);
    if (found == nullptr)
      return configuration_error("not_found",
                                 "failed to find the candidate '" + cli::clean(id) + "' in " + name,
                                 "`kernelmill lineage " + name + "` lists them");
    auto source = source_of(*found, turns, artifacts);
    KM_TRY(source);
    auto document = documents["candidates"][static_cast<size_t>(found - graph.entries.data())];
    document["source"] = std::move(*source);
    return document;
  }
};

expected<episode_candidates> candidates_of(const invocation& in) {
  const auto& what = in.value("EPISODE");
  auto at = locate(what, in.value("--root"));
  KM_TRY(at);
  if (at->whole_run || !at->name.member)
    return configuration_error("usage", "failed to read '" + what + "': it is no episode",
                               "name one like RUN/g3.e1; `kernelmill show " + at->run.path +
                                   "` lists them");
  auto from = open_for_reading(at->run);
  KM_TRY(from);
  auto stored = read_episode(*from, at->run.name, at->name.group, *at->name.member);
  KM_TRY(stored);
  auto graph = graph_of(stored->turns);
  if (graph.entries.empty())
    return configuration_error(
        "not_found", "failed to find a candidate in " + what + ": nothing of it is stored",
        "`kernelmill show " + at->run.path + "` lists what is there");
  json documents;
  watch::add_candidates(documents, stored->turns);
  return episode_candidates{std::move(stored->turns), std::move(graph), std::move(documents),
                            artifact_store{at->run.artifacts}, what};
}

expected<int> print_candidate(const invocation& in) {
  auto all = candidates_of(in);
  KM_TRY(all);
  auto x = all->read(in.value("ID"));
  KM_TRY(x);
  if (in.json) {
    cli::print_json(*x);
    return 0;
  }
  auto source = cli::clean((*x)["source"].get<std::string>());
  cli::print("// " + candidate_text(*x) + "\n" + source + (source.ends_with('\n') ? "" : "\n"));
  return 0;
}

expected<int> print_difference(const invocation& in) {
  auto all = candidates_of(in);
  KM_TRY(all);
  auto left = all->read(in.value("FROM"));
  KM_TRY(left);
  auto to = in.value("TO");
  if (to.empty()) { // what made it
    to = in.value("FROM");
    const auto* made = all->graph.find(to);
    if (made->parent.empty())
      return configuration_error("usage",
                                 "failed to compare " + cli::clean(to) + ": it has no parent",
                                 "name two candidates");
    left = all->read(made->parent);
    KM_TRY(left);
  }
  auto right = all->read(to);
  KM_TRY(right);
  auto id = [](const json& x) { return x["id"].get<std::string>(); };
  auto diff = unified_diff((*left)["source"].get<std::string>(),
                           (*right)["source"].get<std::string>(), id(*left), id(*right));
  if (in.json) {
    cli::print_json({{"from", id(*left)}, {"to", id(*right)}, {"diff", diff}});
    return 0;
  }
  cli::print(cli::clean(diff));
  return 0;
}

cli::argument_spec episode_argument() {
  return {"EPISODE", "An episode as RUN/g3.e1.", true, false, completes::run, {}};
}

} // namespace

cli::command candidate_show_row() {
  return {"candidate show",
          "Prints the source of one candidate of an episode.",
          "kernelmill candidate show first/g3.e1 c2",
          "`kernelmill lineage` lists the candidates.",
          {episode_argument(), {"ID", "A candidate as c2.", true, false, nothing, {}}},
          {runs_root()},
          print_candidate};
}

cli::command candidate_diff_row() {
  return {"candidate diff",
          "Prints what changed between two candidates of an episode.",
          "kernelmill candidate diff first/g3.e1 c2\nkernelmill candidate diff first/g3.e1 c2 c5",
          "With one candidate, what changed since its parent. The output is a unified diff, empty "
          "if nothing changed.",
          {episode_argument(),
           {"FROM", "A candidate as c2.", true, false, nothing, {}},
           {"TO", "A candidate as c5.", false, false, nothing, {}}},
          {runs_root()},
          print_difference};
}

} // namespace kernelmill::commands
