// `kernelmill candidate show`, `diff`, `promote` and `revert`: an episode's candidates, for people.

#include "actors/episode/patch/make_diff.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/episode_candidates.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/commands/view/candidate_tree.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "storage/lineage/candidate_choices.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

expected<int> print_candidate(const invocation& in) {
  auto all = candidates_of(in);
  KM_TRY(all);
  auto x = all->document(in.value("ID"));
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
  auto left = all->document(in.value("FROM"));
  KM_TRY(left);
  auto to = in.value("TO");
  if (to.empty()) { // what made it
    to = in.value("FROM");
    const auto* made = all->graph.find(to);
    if (made->parent.empty())
      return configuration_error("usage",
                                 "failed to compare " + cli::clean(to) + ": it has no parent",
                                 "name two candidates");
    left = all->document(made->parent);
    KM_TRY(left);
  }
  auto right = all->document(to);
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

expected<int> choose(const invocation& in, const std::string& status) {
  auto all = candidates_of(in);
  KM_TRY(all);
  const auto& id = in.value("ID");
  auto x = all->find(id);
  KM_TRY(x);
  candidate_choice choice{all->episode, id, status, in.value("--note"), seconds_since_1970()};
  KM_TRY(add_choice(all->where.run, choice));
  if (in.json) {
    auto document = all->document(id);
    KM_TRY(document);
    document->erase("source");
    cli::print_json(*document);
    return 0;
  }
  cli::print(cli::clean(all->name + ": " + id + " is " + status + " by a person\n"));
  return 0;
}

expected<int> promote_candidate(const invocation& in) {
  return choose(in, "promoted");
}

expected<int> give_up_candidate(const invocation& in) {
  return choose(in, "reverted");
}

cli::argument_spec id_argument() {
  return {"ID", "A candidate as c2.", true, false, nothing, {}};
}

cli::option_spec note_option() {
  return {"--note", "TEXT", "Why, in a few words.", "", false, {}, nothing};
}

} // namespace

cli::command candidate_show_row() {
  return {"candidate show",
          "Prints the source of one candidate of an episode.",
          "kernelmill candidate show first/g3.e1 c2",
          "`kernelmill lineage` lists the candidates.",
          {episode_argument(), id_argument()},
          {runs_root()},
          print_candidate};
}

cli::command candidate_diff_row() {
  return without_tables(
      {"candidate diff",
       "Prints what changed between two candidates of an episode.",
       "kernelmill candidate diff first/g3.e1 c2\nkernelmill candidate diff first/g3.e1 c2 c5",
       "With one candidate, what changed since its parent. The output is a unified diff, empty "
       "if nothing changed.",
       {episode_argument(),
        {"FROM", "A candidate as c2.", true, false, nothing, {}},
        {"TO", "A candidate as c5.", false, false, nothing, {}}},
       {runs_root()},
       print_difference});
}

cli::command candidate_promote_row() {
  return without_tables(
      {"candidate promote",
       "Notes that a person takes a candidate for the best of its episode.",
       "kernelmill candidate promote first/g3.e1 c2 --note 'simplest of the fast ones'",
       "`lineage`, `candidate show` and the page show the choice. It is kept in choices.jsonl of "
       "the run's folder\n"
       "and changes neither records nor rewards nor exports. One candidate of an episode is "
       "promoted at a time.",
       {episode_argument(), id_argument()},
       {note_option(), runs_root()},
       promote_candidate});
}

cli::command candidate_revert_row() {
  return without_tables(
      {"candidate revert",
       "Notes that a person has given a candidate up.",
       "kernelmill candidate revert first/g3.e1 c2 --note 'reads beyond its rows'",
       "Kept and shown as with `candidate promote`.",
       {episode_argument(), id_argument()},
       {note_option(), runs_root()},
       give_up_candidate});
}

} // namespace kernelmill::commands
