#include "launch/commands/episode_candidates.hpp"

#include "launch/analysis/watch/candidates.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/run_view.hpp"
#include "messages/base/json_value.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::commands {

expected<const candidate_entry*> episode_candidates::find(const std::string& id) const {
  const auto* found = graph.find(id);
  if (found == nullptr)
    return configuration_error("not_found",
                               "failed to find the candidate '" + cli::clean(id) + "' in " + name,
                               "`kernelmill lineage " + name + "` lists them");
  return found;
}

expected<nlohmann::ordered_json> episode_candidates::document(const std::string& id) const {
  auto found = find(id);
  KM_TRY(found);
  auto source = source_of(**found, turns, artifacts);
  KM_TRY(source);
  auto choices = choices_of(where.run, episode);
  KM_TRY(choices);
  nlohmann::ordered_json all;
  watch::add_candidates(all, turns, *choices);
  auto result = all["candidates"][static_cast<size_t>(*found - graph.entries.data())];
  result["source"] = std::move(*source);
  return result;
}

cli::argument_spec episode_argument() {
  return {"EPISODE", "An episode as RUN/g3.e1.", true, false, cli::completes::run, {}};
}

expected<episode_candidates> candidates_of(const cli::invocation& in) {
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
  artifact_store artifacts{at->run.artifacts};
  auto episode = short_name({{}, {}, at->name.group, *at->name.member});
  return episode_candidates{std::move(*at),     what,
                            std::move(episode), std::move(stored->turns),
                            std::move(graph),   std::move(artifacts)};
}

} // namespace kernelmill::commands
