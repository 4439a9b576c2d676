#include "launch/commands/place.hpp"

#include "launch/analysis/watch/stored.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::commands {

namespace {

constexpr std::string_view best = "/best";

expected<place> locate_best(const run_directory& run) {
  auto stored = watch::summarize(watch::local_world({}), run);
  KM_TRY(stored);
  auto name = winner_of(run, stored->turns);
  if (!name) name = parse_name(stored->best_turn);
  if (!name)
    return configuration_error("not_found",
                               "failed to find the best turn of the run '" + run.name +
                                   "': none was accepted and timed",
                               "`kernelmill show " + run.path + "` lists what is there");
  return place{run, *name, false};
}

} // namespace

std::optional<name_parts> winner_of(const run_directory& run, uint64_t turns) {
  auto ended = read_search_end(run, turns);
  if (!ended || !(*ended)["winner"].is_object()) return std::nullopt;
  auto name = parse_name(text_in((*ended)["winner"], "turn"));
  return name && name->turn ? name : std::nullopt;
}

expected<place> locate(const std::string& what, const std::string& root) {
  place result;
  auto slash = what.find_last_of('/');
  auto name = slash == std::string::npos ? std::nullopt : parse_name(what.substr(slash + 1));
  auto run = find_run(name ? what.substr(0, slash) : what, root);
  if (!run && what.ends_with(best)) // and is no run of that name
    if (auto whole = find_run(what.substr(0, slash), root)) return locate_best(*whole);
  KM_TRY(run);
  result.run = *run;
  result.whole_run = !name;
  if (name) result.name = *name;
  return result;
}

} // namespace kernelmill::commands
