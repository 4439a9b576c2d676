// What the store says of a run or of one episode: the funnel, the lineage, the turns.

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/watch/query.hpp"
#include "launch/watch/stored.hpp"
#include "launch/watch/views.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "storage/group_reader.hpp"

namespace kernelmill::watch {

namespace {

struct chosen_episode {
  run_directory run;
  std::string name; ///< "g3.e1"
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
  chosen_episode result{at->first, fmt::format("g{}.e{}", parts->group, *parts->member), {}};
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
  for (auto f : verdict.getFindings()) result["findings"].push_back(std::string{f.getRule()});
  result["terminal"] = x.getTerminal();
  result["stop_reason"] = std::string{x.getStopReason()};
  result["committed_at"] = x.getCommittedAt();
  auto s = x.getSeconds();
  result["seconds"] = {{"policy", s.getPolicy()},
                       {"build", s.getBuild()},
                       {"evaluate", s.getEvaluate()},
                       {"profile", s.getProfile()}};
  return result;
}

} // namespace

expected<json> stats_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run"}));
  auto run = find_run(text_in(query, "run"), in.root);
  KM_TRY(run);
  auto x = summarize(in, *run);
  KM_TRY(x);
  json result = {{"run", run->name}, {"state", x->state}, {"turns", x->turns}};
  result["episodes"] = {{"ended", x->episodes},
                        {"accepted", x->accepted},
                        {"rejected", x->rejected},
                        {"infrastructure", x->infrastructure}};
  auto share = [&](uint64_t n) {
    return x->turns > 0 ? json(static_cast<double>(n) / static_cast<double>(x->turns))
                        : json(nullptr);
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
  for (const auto& [stage, seconds] : x->seconds) all += seconds;
  result["time"] = json::array();
  for (const auto& [stage, seconds] : x->seconds)
    result["time"].push_back(
        {{"stage", stage},
         {"seconds", seconds},
         {"share", all > 0 ? json(seconds / all) : json(nullptr)},
         {"mean_seconds",
          x->turns > 0 ? json(seconds / static_cast<double>(x->turns)) : json(nullptr)}});
  result["categories"] = json::object();
  for (const auto& [category, count] : x->categories) result["categories"][category] = count;
  result["mean_reward"] = x->mean_reward();
  result["best_speedup"] = x->best_speedup > 0 ? json(x->best_speedup) : json(nullptr);
  result["best_turn"] = x->best_turn;
  result["prompt_tokens"] = x->prompt_tokens;
  result["completion_tokens"] = x->completion_tokens;
  result["wall_seconds"] = std::max(0.0, x->last_at - x->began_at);
  return result;
}

expected<json> lineage_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"what"}));
  auto x = find_episode(in, text_in(query, "what"));
  KM_TRY(x);
  if (!is_there(*x)) return nothing_stored(*x);
  json result = {{"run", x->run.name}, {"episode", x->name}, {"turns", json::array()}};
  for (const auto& record : x->stored.turns) {
    auto opened = record.open();
    result["turns"].push_back(turn_json(opened->getTurn()));
  }
  return result;
}

expected<json> turns_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"what", "from", "probe"}));
  auto x = find_episode(in, text_in(query, "what"));
  KM_TRY(x);
  bool live = false;
  if (!is_there(*x)) { // an episode that has no turn yet may come
    auto says = in.ask_run(x->run);
    if (!says) return nothing_stored(*x);
    live = true;
  }
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
                     {"best_speedup", end.getBestSpeedup()}};
  } else if (!live && query.value("probe", true)) { // asking costs more than reading turns
    live = static_cast<bool>(in.ask_run(x->run));
  }
  if (live || query.value("probe", true)) result["live"] = live;
  return result;
}

} // namespace kernelmill::watch
