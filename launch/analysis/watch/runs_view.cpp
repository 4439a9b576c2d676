// All runs of a root: what the store says, and for those in progress what their monitors say.

#include <algorithm>
#include <filesystem>

#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/run_now.hpp"
#include "launch/analysis/watch/run_row.hpp"
#include "launch/analysis/watch/time_left.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "storage/run_tags.hpp"

namespace kernelmill::watch {

const std::vector<std::string>& keys_of_runs() {
  static const std::vector<std::string> all{"run",
                                            "folder",
                                            "tags",
                                            "state",
                                            "live",
                                            "progress",
                                            "episodes",
                                            "ended",
                                            "turns",
                                            "accepted",
                                            "rejected",
                                            "infrastructure",
                                            "reward",
                                            "best_speedup_lower",
                                            "geomean_speedup",
                                            "evidence",
                                            "near_misses",
                                            "began_at",
                                            "seconds",
                                            "left_seconds",
                                            "failure",
                                            "failure_category"};
  return all;
}

namespace {

json unreadable(const std::string& folder, const std::string& name, const error& why) {
  return {{"run", name},
          {"folder", folder},
          {"state", "unreadable"},
          {"failure", why.message},
          {"failure_category", why.category},
          {"next", why.hint}};
}

json number(const std::optional<double>& x) {
  return x ? json(*x) : json(nullptr);
}

/// Nothing of a run that does not go on, or of which too little is done.
std::optional<double> left_of(const run_now& x) {
  const auto& stored = x.stored;
  const auto& live = *x.live;
  if (live.state != "running") return std::nullopt;
  run_pace pace{.episodes = live.planned,
                .ended = stored.episodes,
                .live = live.live,
                .turns = stored.turns,
                .ended_turns = stored.ended_turns,
                .seconds =
                    x.seconds() - std::max(0.0, stored.first_turn_at - stored.worked.began_at()),
                .seen_turns = static_cast<double>(stored.turns) - 1};
  for (const auto& x : live.episodes) pace.max_turns = std::max(pace.max_turns, x.max_turns);
  for (const auto& [stage, sum] : stored.stages) {
    pace.live_seconds += sum.seconds;
    pace.wait_seconds += sum.seconds - sum.work;
  }
  return forecast_of(pace).seconds;
}

json row_of(const world& in, const run_directory& run) {
  auto folder = std::filesystem::path{run.path}.filename().string();
  auto now = look_at_run(in, run);
  if (!now) return unreadable(folder, run.name, now.error());
  const auto& stored = now->stored;
  const auto* live = now->live ? &*now->live : nullptr;
  json row = {
      {"run", run.name}, {"folder", folder}, {"directory", run.path}, {"tags", tags_of(run)}};
  row["state"] = now->state();
  row["live"] = live ? live->live : 0;
  auto plan = live ? run_plan{live->planned, false} : read_plan(run);
  auto planned = plan.episodes;
  bool lacks_winner = now->lacks_winner(run, plan);
  auto ended = live ? std::max(live->ended, stored.episodes) : stored.episodes;
  row["episodes"] = planned;
  row["ended"] = ended;
  row["progress"] = planned > 0 ? static_cast<double>(ended) / static_cast<double>(planned) : 0.0;
  row["turns"] = stored.turns;
  row["accepted"] = stored.accepted;
  row["rejected"] = stored.rejected;
  row["infrastructure"] = now->infrastructure();
  row["reward"] = stored.mean_reward();
  row["best_speedup_lower"] = reporting::lower_json(stored.speedups.best());
  row["geomean_speedup"] = number(stored.speedups.geomean());
  row["best_turn"] = stored.best_turn;
  row["evidence"] = number(stored.evidence.mean());
  row["near_misses"] = stored.evidence.near_misses();
  row["began_at"] = stored.worked.began_at();
  row["seconds"] = now->seconds();
  row["left_seconds"] = number(live ? left_of(*now) : std::nullopt);
  row["failure"] = !live && stored.state == "open" ? "it was cut off"
                   : lacks_winner                  ? winner_not_measured
                                                   : stored.fault.message;
  row["failure_category"] = stored.fault.category;
  row["failure_hint"] = stored.fault.hint;
  row["next"] = lacks_winner ? how_to_measure_winner(run.path) : now->next(run);
  return row;
}

} // namespace

json row_of_run(const world& in, const std::string& folder) {
  auto run = find_run(in.root + "/" + folder, in.root);
  return run ? row_of(in, *run) : unreadable(folder, folder, run.error());
}

expected<json> runs_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run", "where", "sort"}));
  std::vector<json> rows;
  if (auto name = text_in(query, "run"); !name.empty()) {
    auto run = find_run(name, in.root);
    KM_TRY(run);
    return json{{"root", in.root}, {"runs", json::array({row_of(in, *run)})}};
  }
  for (const auto& name : list_runs(in.root)) rows.push_back(row_of_run(in, name));
  auto chosen = chosen_rows(std::move(rows), query, keys_of_runs());
  KM_TRY(chosen);
  return json{{"root", in.root}, {"runs", std::move(*chosen)}};
}

} // namespace kernelmill::watch
