#include "launch/analysis/study/comparison.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "launch/analysis/study/episode_comparison.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "storage/lineage/fork.hpp"

namespace kernelmill::study {

namespace {

compared_source source_of(const compared_side& x) {
  return {x.run->where.name, &x.run->artifacts, &x.run->config};
}

const char* kind_of_side(const compared_side& x) {
  if (x.whole_run) return "runs";
  if (!x.name.member) return "groups";
  return x.name.turn ? "turns" : "episodes";
}

tl::unexpected<error> nothing_there(const compared_side& x) {
  return configuration_error("not_found",
                             "failed to find '" + name_of(x) + "': nothing of that name is stored",
                             "`kernelmill show " + x.run->where.path + "` lists what is there");
}

// -- the documents --------------------------------------------------------------------------------

expected<compared_run> scores_of(const opened_run& x) {
  compared_run result;
  if (x.scores) {
    result.scores = *x.scores;
  } else {
    auto fork = fork_of(x.manifest);
    auto scores = read_scores(*x.lineage, x.where.name, fork ? fork->turns : 0);
    KM_TRY(scores);
    result.scores = std::move(*scores);
  }
  auto lost = watch::lost_open_of(*x.lineage, x.where.name);
  KM_TRY(lost);
  result.lost_open = *lost;
  for (const auto& task : x.manifest.value("tasks", json::array()))
    result.tasks[task.value("id", std::string{})] = {task.value("digest", std::string{}),
                                                     task.value("split", std::string{})};
  return result;
}

json environment_of(const opened_run& x) {
  json result = json::object();
  for (const auto* key : {"toolchain", "slots", "fork"})
    result[key] = x.manifest.value(key, json(nullptr));
  for (const auto& layer : x.manifest.value("sandbox", json::array()))
    result["sandbox." + layer.value("name", std::string{})] = layer.value("state", std::string{});
  return result;
}

/// What makes figures of the two mean different things.
json notes_on(const json& configuration, const json& result) {
  json notes = json::array();
  auto any = [&](std::initializer_list<const char*> sections) {
    for (const auto& x : configuration)
      for (const auto* section : sections)
        if (x["key"].get<std::string>().starts_with(section)) return true;
    return false;
  };
  if (any({"reward.", "governance."}))
    notes.push_back(
        "the runs were rewarded by different rules: `kernelmill rescore` gives both the "
        "same ones");
  if (any({"evaluation.", "compile."}))
    notes.push_back("the runs were built or evaluated in different ways");
  if (result["tasks"]["compared"] == 0)
    notes.push_back("no task is in both runs: there is nothing to compare");
  else if (result["tasks"]["compared"] < least_tasks)
    notes.push_back(fmt::format("there is no interval of fewer than {} tasks: when two runs are as "
                                "good, all of five tasks favour the same one in 6 % of cases",
                                least_tasks));
  return notes;
}

expected<json> runs_document(const compared_side& a, const compared_side& b,
                             const comparison_options& by) {
  auto x = scores_of(*a.run);
  KM_TRY(x);
  auto y = scores_of(*b.run);
  KM_TRY(y);
  json result = {
      {"configuration", config_differences(a.run->config, b.run->config)},
      {"environment", config_differences(environment_of(*a.run), environment_of(*b.run))}};
  auto scores = compare_scores(*x, *y, by);
  for (auto& [key, value] : scores.items()) result[key] = std::move(value);
  result["notes"] = notes_on(result["configuration"], result);
  return result;
}

expected<json> groups_document(const compared_side& a, const compared_side& b) {
  auto read = [](const compared_side& x) -> expected<stored_group> {
    auto group = read_group(*x.run->lineage, x.run->where.name, x.name.group);
    KM_TRY(group);
    if (group->episodes.empty()) return nothing_there(x);
    return group;
  };
  auto x = read(a);
  KM_TRY(x);
  auto y = read(b);
  KM_TRY(y);
  return compare_groups(*x, source_of(a), *y, source_of(b));
}

expected<stored_episode> read_side(const compared_side& x) {
  auto episode = read_episode(*x.run->lineage, x.run->where.name, x.name.group, *x.name.member);
  KM_TRY(episode);
  if (episode->turns.empty() && !episode->end) return nothing_there(x);
  episode->member = *x.name.member;
  return episode;
}

expected<json> episodes_document(const compared_side& a, const compared_side& b) {
  auto x = read_side(a);
  KM_TRY(x);
  auto y = read_side(b);
  KM_TRY(y);
  return compare_episodes(a.name.group, *x, source_of(a), b.name.group, *y, source_of(b));
}

expected<Message<wire::Record>> read_turn(const compared_side& x) {
  auto episode = read_side(x);
  KM_TRY(episode);
  for (auto& record : episode->turns)
    if (record.open()->getTurn().getTurn() == *x.name.turn) return std::move(record);
  return nothing_there(x);
}

expected<json> turns_document(const compared_side& a, const compared_side& b) {
  auto x = read_turn(a);
  KM_TRY(x);
  auto y = read_turn(b);
  KM_TRY(y);
  auto left = x->open(), right = y->open();
  auto groups = compare_turns({name_of(a), left->getTurn(), &a.run->artifacts, &a.run->config},
                              {name_of(b), right->getTurn(), &b.run->artifacts, &b.run->config});
  KM_TRY(groups);
  return json{{"groups", std::move(*groups)}};
}

} // namespace

std::string name_of(const compared_side& x) {
  // Its folder: the name by which commands find it, whatever its records call it.
  auto result = std::filesystem::path{x.run->where.path}.filename().string();
  if (!x.whole_run) result += fmt::format("/g{}", x.name.group);
  if (x.name.member) result += fmt::format(".e{}", *x.name.member);
  if (x.name.turn) result += fmt::format(".t{}", *x.name.turn);
  return result;
}

expected<std::shared_ptr<const opened_run>> read_run(const run_directory& where,
                                                     std::shared_ptr<const store> lineage,
                                                     std::shared_ptr<const run_scores> scores) {
  auto config = read_json(where.config_file());
  KM_TRY(config);
  auto manifest = read_json(where.manifest_file());
  KM_TRY(manifest);
  return std::make_shared<const opened_run>(
      opened_run{where, std::move(lineage), artifact_store{where.artifacts}, std::move(*config),
                 std::move(*manifest), std::move(scores)});
}

expected<json> compare_sides(const compared_side& a, const compared_side& b,
                             const comparison_options& by) {
  std::string kind = kind_of_side(a);
  if (kind != kind_of_side(b))
    return configuration_error(
        "usage",
        fmt::format("failed to run 'compare': A is one of the {} and B one of the {}", kind,
                    kind_of_side(b)),
        "compare two runs, two groups, two episodes, or two turns");
  if (by.held_out && kind != "runs")
    return configuration_error("usage", "failed to run 'compare': --held-out belongs to runs",
                               "leave it out");
  json result = {{"kind", kind}, {"a", {{"name", name_of(a)}}}, {"b", {{"name", name_of(b)}}}};
  result["a"]["directory"] = a.run->where.path;
  result["b"]["directory"] = b.run->where.path;
  auto found = kind == "runs"       ? runs_document(a, b, by)
               : kind == "groups"   ? groups_document(a, b)
               : kind == "episodes" ? episodes_document(a, b)
                                    : turns_document(a, b);
  KM_TRY(found);
  for (auto& [key, value] : found->items()) result[key] = std::move(value);
  if (name_of(a) == name_of(b)) // two runs of one name: their folders tell them apart
    for (const auto* side : {"a", "b"})
      result[side]["name"] = result[side]["directory"].get<std::string>() +
                             name_of(a).substr(a.run->where.name.size());
  return result;
}

} // namespace kernelmill::study
