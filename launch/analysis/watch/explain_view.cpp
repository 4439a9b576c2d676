// `explain`: the findings of a run or an episode as one document.

#include <filesystem>

#include <fmt/format.h>

#include "launch/analysis/watch/candidates.hpp"
#include "launch/analysis/watch/explain.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/run_now.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::watch {

namespace {

json to_json(const finding& x) {
  return {{"resource", x.resource}, {"starved", x.starved}, {"text", x.text}, {"next", x.next}};
}

void add_findings(json& to, const std::vector<finding>& all) {
  to["resource"] = all.front().resource;
  to["starved"] = all.front().starved;
  to["findings"] = json::array();
  for (const auto& x : all) to["findings"].push_back(to_json(x));
}

expected<json> explain_run(const world& in, const run_directory& run) {
  auto now = look_at_run(in, run, workers_of_nodes(in));
  KM_TRY(now);
  auto around = look_around(in, run);
  json result = {{"subject", std::filesystem::path{run.path}.filename().string()},
                 {"kind", "run"},
                 {"state", now->state()}};
  if (now->live) {
    const auto& view = *now->live;
    result["episodes"] = view.planned;
    result["ended"] = view.ended;
    result["live"] = view.live;
    add_findings(result, findings_of(view, now->stored, around));
  } else {
    auto plan = read_plan(run);
    result["episodes"] = plan.episodes;
    result["ended"] = now->stored.episodes;
    result["live"] = 0;
    auto all = findings_of_ended(run, now->stored, around);
    if (now->lacks_winner(run, plan)) {
      std::erase_if(all, [](const auto& x) { return x.resource == "none"; });
      all.insert(all.begin(),
                 {"the end of its process", true,
                  std::string{"All its episodes have ended, and "} + winner_not_measured + ".",
                  how_to_measure_winner(run.path)});
    }
    add_findings(result, all);
  }
  return result;
}

json of_live(const live_view& view, const episode_row& x, const surroundings& around) {
  json result = {{"subject", view.run + "/" + x.id}, {"kind", "episode"}, {"live", true}};
  result["state"] = x.state;
  result["phase"] = x.phase;
  result["task"] = x.task;
  result["turn"] = x.turn;
  result["max_turns"] = x.max_turns;
  if (x.deadline_seconds > 0) result["deadline_seconds"] = x.deadline_seconds;
  // A job that stands behind others is not late: actors/episode/episode_waiting.cpp.
  result["deadline_waits"] = x.queued && (x.phase == "building" || x.phase == "evaluating");
  result["episode_deadline_seconds"] = x.left_seconds;
  if (x.job) {
    auto worker = view.workers.find(x.job->worker);
    if (worker != view.workers.end()) result["held_by"] = worker->second;
    result["attempt"] = x.job->attempt;
    result["attempts_allowed"] = x.job->attempts_allowed;
    result["last_error"] = x.job->last_error;
  } else if (x.tried) {
    result["held_by"] = "policy client";
    result["attempt"] = x.tried->attempts;
    result["last_error"] = x.tried->last_error;
    result["next_attempt_seconds"] = x.tried->due_seconds;
  }
  if (x.queued) {
    result["queue"] = x.queued->queue;
    result["position"] = x.queued->position;
    if (const auto* queue = view.queue(x.queued->queue))
      if (auto wait = queue->wait(x.queued->position); wait > 0) result["wait_seconds"] = wait;
  }
  add_findings(result, {finding_of(view, x, around)});
  return result;
}

expected<json> of_stored(const world& in, const run_directory& run, const std::string& name,
                         const name_parts& at) {
  auto from = open_store_of(in, run);
  KM_TRY(from);
  auto x = read_episode(**from, run.name, at.group, *at.member);
  KM_TRY(x);
  if (x->turns.empty() && !x->end)
    return configuration_error("not_found",
                               "failed to find " + name + " in the run '" + run.name +
                                   "': it is not live, and nothing of it is stored",
                               "`kernelmill show " + run.path + "` lists what is there");
  json result = {{"subject", run.name + "/" + name}, {"kind", "episode"}, {"live", false}};
  finding why{"none", false, {}, {}};
  if (x->end) {
    auto opened = x->end->open();
    auto end = opened->getEpisode();
    result["state"] = enum_name(capnp::DynamicEnum{end.getOutcome()});
    result["turns"] = end.getTurns();
    why.text = fmt::format("It has ended after {}: {}.", counted(end.getTurns(), "turn"),
                           end.getStopReason().cStr());
    add_tool_end(result, end);
    if (end.getTerminalState().size() > 0)
      why.text +=
          fmt::format(" Its state is {}; its tools took {} steps and {:.1f} s on the machine "
                      "that ran kernels.",
                      end.getTerminalState().cStr(), end.getSteps(), end.getGpuSeconds());
  } else {
    result["state"] = "open";
    result["turns"] = x->turns.size();
    why = {"the end of its process", true,
           fmt::format("It has {} committed turns and no end, and no process works on it.",
                       x->turns.size()),
           "`kernelmill resume " + run.path + "` continues it"};
  }
  if (!x->turns.empty()) {
    auto opened = x->turns.back().open();
    auto turn = opened->getTurn();
    auto fault = turn.getVerdict().getFault();
    if (fault.getMessage().size() > 0) {
      result["last_error"] = fault.getMessage().cStr();
      why.text += std::string{" The last turn: "} + turn.getVerdict().getCategory().cStr() + ", " +
                  fault.getMessage().cStr() + ".";
    }
  }
  add_findings(result, {why});
  return result;
}

} // namespace

expected<json> explain_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"what"}));
  auto at = locate(in, text_in(query, "what"));
  KM_TRY(at);
  const auto& [run, name] = *at;
  if (name.empty()) return explain_run(in, run);
  auto parts = parse_name(name);
  if (!parts || !parts->member)
    return configuration_error("usage", "failed to explain '" + name + "': it is no episode",
                               "name a run, or an episode like RUN/g3.e1");
  if (auto says = in.ask_run(run)) {
    auto view = read_live({run, std::move(*says)}, workers_of_nodes(in));
    auto id = fmt::format("g{}.e{}", parts->group, *parts->member);
    if (const auto* x = view.episode(id)) return of_live(view, *x, look_around(in, run));
  }
  return of_stored(in, run, name, *parts);
}

} // namespace kernelmill::watch
