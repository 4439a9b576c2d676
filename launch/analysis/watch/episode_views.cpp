// What the store says of a run or of one episode: the funnel, the lineage, the turns.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "launch/analysis/watch/candidates.hpp"
#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/run_now.hpp"
#include "launch/analysis/watch/stage_times.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "storage/lineage/fork.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::watch {

namespace {

struct chosen_episode {
  run_directory run;
  std::string name;       ///< "g3.e1"
  bool worked_on = false; ///< when its records were read, or somewhat earlier
  stored_episode stored;
};

expected<chosen_episode> find_episode(const world& in, const std::string& what) {
  auto at = locate(in, what);
  KM_TRY(at);
  auto parts = parse_name(at->second);
  if (!parts || !parts->member)
    return configuration_error("usage", "failed to read '" + what + "': it is no episode",
                               "name one like RUN/g3.e1; `kernelmill show " + at->first.path +
                                   "` lists them");
  chosen_episode result{
      at->first, fmt::format("g{}.e{}", parts->group, *parts->member), is_worked_on(at->first), {}};
  auto from = open_store_of(in, result.run);
  KM_TRY(from);
  auto stored = read_episode(**from, result.run.name, parts->group, *parts->member);
  KM_TRY(stored);
  result.stored = std::move(*stored);
  return result;
}

bool is_there(const chosen_episode& x) {
  return !x.stored.turns.empty() || x.stored.end;
}

tl::unexpected<error> nothing_stored(const chosen_episode& x) {
  return configuration_error("not_found",
                             "failed to find " + x.name + " in the run '" + x.run.name +
                                 "': nothing of it is stored",
                             "`kernelmill show " + x.run.path + "` lists what is there");
}

/// Adds what of the episode's next turn has come, null where nothing streams, and what the episode
/// does meanwhile: "queued for a slot, 12th of 49".
void add_glimpse(const world& in, const chosen_episode& x, json& to) {
  to["streaming"] = nullptr;
  to["at"] = "";
  if (!x.worked_on || x.stored.end || !in.ask_run) return;
  auto says = in.ask_run(x.run);
  if (!says) return;
  auto live = read_live({x.run, std::move(*says)});
  if (const auto* row = live.episode(x.name))
    to["at"] = row->state + ": " + detail_text(live, *row);
  if (auto stream = live.streams.find(x.name); stream != live.streams.end())
    to["streaming"] = {{"turn", x.stored.turns.size()},
                       {"bytes", stream->second.bytes},
                       {"tail", stream->second.tail}};
}

json turn_json(wire::TurnRecord::Reader x) {
  auto verdict = x.getVerdict();
  auto timing = x.getFacts().getEvaluation().getTiming();
  json result = {{"turn", x.getTurn()}, {"id", std::string{x.getTurnId()}}};
  result["parent"] = std::string{x.getParentTurnId()};
  result["transition"] = std::string{x.getTransition()};
  result["candidate_sha256"] = std::string{x.getCandidateSha256()};
  result["category"] = std::string{verdict.getCategory()};
  result["outcome"] = enum_name(capnp::DynamicEnum{verdict.getOutcome()});
  result["reward"] = verdict.getReward();
  result["speedup"] = nullptr;
  if (timing.getMeasured()) {
    auto s = timing.getSpeedup();
    result["speedup"] = {{"estimate", s.getEstimate()}, {"low", s.getLow()}, {"high", s.getHigh()}};
  }
  auto fault = verdict.getFault();
  result["message"] = std::string{fault.getMessage()};
  result["findings"] = json::array();
  result["severities"] = json::array(); // of the findings
  for (auto f : verdict.getFindings()) {
    auto severity = f.getSeverity();
    result["findings"].push_back(std::string{f.getRule()});
    result["severities"].push_back(enum_name(capnp::DynamicEnum{std::move(severity)}));
  }
  result["terminal"] = x.getTerminal();
  result["stop_reason"] = std::string{x.getStopReason()};
  result["committed_at"] = x.getCommittedAt();
  result.update(times_json(x));
  return result;
}

/// Finds the forks of an episode, and theirs, among the runs below the root and beside its run.
class branch_finder {
public:
  branch_finder(const world& in, const run_directory& run) : in_(in) {
    std::error_code code;
    std::set<std::string> folders;
    for (const auto& folder : {in.root, std::filesystem::path{run.path}.parent_path().string()})
      folders.insert(
          std::filesystem::weakly_canonical(folder.empty() ? "." : folder, code).string());
    for (const auto& folder : folders)
      for (const auto& name : list_runs(folder)) {
        auto other = open_run(folder + "/" + name);
        if (!other) continue; // a query of that run says why
        auto origin = fork_of(*other);
        if (origin && *origin) forks_.push_back({std::move(*other), std::move(**origin)});
      }
  }

  /// The branches behind an episode's turns. `ids` are the turns' in `of`; `shown` are those that
  /// the reader knows them by, since a fork's first turns are its origin's.
  expected<json> branches_of(const run_directory& of, const std::vector<std::string>& ids,
                             const std::vector<std::string>& shown) {
    auto result = json::array();
    for (const auto& [run, origin] : forks_) {
      if (origin.turns > ids.size() || ids[origin.turns - 1] != origin.turn_id ||
          is_other(origin, of) || is_open(run))
        continue;
      open_.push_back(run.path);
      auto found = branches_in(run, origin.turns, shown);
      open_.pop_back();
      KM_TRY(found);
      for (auto& x : *found) result.push_back(std::move(x));
    }
    return result;
  }

private:
  /// Whether a fork is of another run of the same name, which is still there.
  static bool is_other(const fork_origin& x, const run_directory& of) {
    std::error_code code;
    return std::filesystem::exists(x.directory, code) &&
           !std::filesystem::equivalent(x.directory, of.path, code);
  }

  bool is_open(const run_directory& x) const {
    return std::find(open_.begin(), open_.end(), x.path) != open_.end();
  }

  expected<json> branches_in(const run_directory& run, uint32_t turns,
                             const std::vector<std::string>& shown) {
    auto result = json::array();
    auto from = open_store_of(in_, run);
    KM_TRY(from);
    auto group = read_group(**from, run.name, 0); // a fork has no other
    KM_TRY(group);
    for (const auto& e : group->episodes) {
      std::vector<std::string> ids, names{shown.begin(), shown.begin() + turns};
      json x = {{"run", run.name},
                {"episode", fmt::format("g0.e{}", e.member)},
                {"directory", run.path},
                {"shared_turns", turns},
                {"turns", json::array()}};
      for (const auto& record : e.turns) {
        auto opened = record.open();
        auto turn = opened->getTurn();
        ids.emplace_back(turn.getTurnId().cStr());
        if (ids.size() <= turns) continue;
        x["turns"].push_back(turn_json(turn));
        x["turns"].back()["parent"] = names.back();
        names.push_back(ids.back());
      }
      if (ids.size() < turns) continue; // it was killed before they were there
      auto below = branches_of(run, ids, names);
      KM_TRY(below);
      x["branches"] = std::move(*below);
      result.push_back(std::move(x));
    }
    return result;
  }

  const world& in_;
  std::vector<std::pair<run_directory, fork_origin>> forks_;
  std::vector<std::string> open_; ///< those that are looked into, so that no circle is followed
};

} // namespace

expected<json> stats_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run"}));
  auto run = find_run(text_in(query, "run"), in.root);
  KM_TRY(run);
  auto now = look_at_run(in, *run);
  KM_TRY(now);
  const auto* x = &now->stored;
  json result = {{"run", run->name},
                 {"folder", std::filesystem::path{run->path}.filename().string()},
                 {"state", now->state()},
                 {"turns", x->turns}};
  result["open_turns"] = x->open_turns;
  result["episodes"] = {{"ended", x->episodes},
                        {"accepted", x->accepted},
                        {"rejected", x->rejected},
                        {"infrastructure", now->infrastructure()}};
  auto share = [&](uint64_t n) {
    auto asked = x->asked_turns();
    return asked > 0 ? json(static_cast<double>(n) / static_cast<double>(asked)) : json(nullptr);
  };
  result["funnel"] = json::array();
  const std::pair<const char*, uint64_t> steps[] = {{"format", x->format},
                                                    {"built", x->built},
                                                    {"correct", x->correct},
                                                    {"timed", x->timed},
                                                    {"faster", x->faster}};
  for (const auto& [step, count] : steps)
    result["funnel"].push_back({{"step", step}, {"turns", count}, {"share", share(count)}});
  double all = 0;
  for (const auto& [stage, sum] : x->stages) all += sum.work;
  auto turns = static_cast<double>(x->own_turns);
  result["time"] = json::array();
  for (const auto& [stage, sum] : x->stages)
    result["time"].push_back(
        {{"stage", stage},
         {"work_seconds", sum.work},
         {"wait_seconds", sum.seconds - sum.work},
         {"share", all > 0 ? json(sum.work / all) : json(nullptr)},
         {"mean_work_seconds", turns > 0 ? json(sum.work / turns) : json(nullptr)},
         {"mean_wait_seconds",
          turns > 0 ? json((sum.seconds - sum.work) / turns) : json(nullptr)}});
  result["categories"] = json::object();
  for (const auto& [category, count] : x->categories) result["categories"][category] = count;
  result["mean_reward"] = x->mean_reward();
  result["best_speedup_lower"] = reporting::lower_json(x->speedups.best());
  auto geomean = x->speedups.geomean();
  result["geomean_speedup"] = geomean ? json(*geomean) : json(nullptr);
  auto evidence = x->evidence.mean();
  result["evidence"] = evidence ? json(*evidence) : json(nullptr);
  result["near_misses"] = x->evidence.near_misses();
  result["best_turn"] = x->best_turn;
  result["prompt_tokens"] = x->prompt_tokens;
  result["completion_tokens"] = x->completion_tokens;
  result["models"] = x->models;
  result["wall_seconds"] = now->seconds();
  return result;
}

expected<json> lineage_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"what"}));
  auto x = find_episode(in, text_in(query, "what"));
  KM_TRY(x);
  if (!is_there(*x)) return nothing_stored(*x);
  auto fork = fork_of(x->run);
  KM_TRY(fork);
  json result = {{"run", x->run.name}, {"episode", x->name}, {"fork", nullptr}};
  if (*fork)
    result["fork"] = {{"run", (*fork)->run},
                      {"episode", fmt::format("g{}.e{}", (*fork)->group, (*fork)->member)},
                      {"directory", (*fork)->directory},
                      {"turns", (*fork)->turns},
                      {"turn_id", (*fork)->turn_id}};
  result["turns"] = json::array();
  std::vector<std::string> ids;
  for (const auto& record : x->stored.turns) {
    auto opened = record.open();
    auto turn = opened->getTurn();
    ids.emplace_back(turn.getTurnId().cStr());
    result["turns"].push_back(turn_json(turn));
    result["turns"].back()["shared"] = *fork && turn.getTurn() < (*fork)->turns;
  }
  auto choices = choices_of(x->run, x->name);
  KM_TRY(choices);
  add_candidates(result, x->stored.turns, *choices);
  auto branches = branch_finder{in, x->run}.branches_of(x->run, ids, ids);
  KM_TRY(branches);
  result["branches"] = std::move(*branches);
  return result;
}

expected<json> turns_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"what", "from", "streaming"}));
  auto x = find_episode(in, text_in(query, "what"));
  KM_TRY(x);
  // An episode that has no turn yet may come.
  if (!is_there(*x) && !x->worked_on) return nothing_stored(*x);
  auto from = count_in(query, "from", 0);
  json result = {{"run", x->run.name}, {"episode", x->name}, {"turns", json::array()}};
  for (const auto& record : x->stored.turns) {
    auto opened = record.open();
    auto turn = opened->getTurn();
    if (turn.getTurn() >= from) result["turns"].push_back(turn_json(turn));
  }
  result["end"] = nullptr;
  if (x->stored.end) {
    auto opened = x->stored.end->open();
    auto end = opened->getEpisode();
    result["end"] = {{"outcome", enum_name(capnp::DynamicEnum{end.getOutcome()})},
                     {"stop_reason", std::string{end.getStopReason()}},
                     {"turns", end.getTurns()},
                     {"best_speedup_lower",
                      end.getBestSpeedup() > 0 ? json(end.getBestSpeedup()) : json(nullptr)}};
    add_tool_end(result["end"], end);
  }
  result["live"] = x->worked_on;
  if (query.value("streaming", false)) add_glimpse(in, *x, result);
  return result;
}

} // namespace kernelmill::watch
