// The live episodes, with what each waits for, and totals.

#include <map>

#include <nlohmann/json.hpp>

#include "launch/watch/live.hpp"
#include "launch/watch/query.hpp"
#include "launch/watch/views.hpp"

namespace kernelmill::watch {

const std::vector<std::string>& keys_of_episodes() {
  static const std::vector<std::string> all{
      "run",         "id",           "state",   "phase",      "age_seconds",  "task",
      "turn",        "max_turns",    "queue",   "position",   "wait_seconds", "worker",
      "best_reward", "best_speedup", "attempt", "last_error", "detail"};
  return all;
}

namespace {

json totals_of(const live_view& x) {
  std::map<std::string, uint64_t> states;
  for (const auto& e : x.episodes) ++states[e.state];
  json result = {{"run", x.run},
                 {"directory", x.directory},
                 {"state", x.state},
                 {"episodes", x.planned},
                 {"ended", x.ended},
                 {"live", x.live},
                 {"turns", x.turns},
                 {"accepted", x.accepted},
                 {"rejected", x.rejected},
                 {"infrastructure", x.infrastructure},
                 {"states", json::object()},
                 {"queues", json::array()}};
  for (const auto& [state, count] : states) result["states"][state] = count;
  for (const auto& q : x.queues)
    result["queues"].push_back({{"queue", q.name},
                                {"state", q.state},
                                {"waiting", q.waiting},
                                {"leased", q.leased},
                                {"workers", q.workers},
                                {"places", q.credits},
                                {"done", q.done},
                                {"median_seconds", q.median_seconds},
                                {"oldest_wait_seconds", q.oldest_wait_seconds}});
  return result;
}

} // namespace

expected<json> ps_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run", "where", "sort", "limit"}));
  auto found = live_runs(in, text_in(query, "run"));
  KM_TRY(found);
  // An error of a condition must show also when nothing is live.
  KM_TRY(chosen_rows({}, query, keys_of_episodes()));
  auto workers = workers_of_nodes(in);
  json runs = json::array();
  std::vector<json> rows;
  for (const auto& one : *found) {
    auto view = read_live(one, workers);
    runs.push_back(totals_of(view));
    for (const auto& x : view.episodes) rows.push_back(to_json(view, x));
  }
  auto total = rows.size();
  auto chosen = chosen_rows(std::move(rows), query, keys_of_episodes());
  KM_TRY(chosen);
  auto matching = chosen->size();
  if (auto limit = count_in(query, "limit", 0); limit > 0 && chosen->size() > limit)
    chosen->resize(limit);
  json result;
  result["runs"] = std::move(runs);
  result["live"] = total;
  result["matching"] = matching;
  result["episodes"] = std::move(*chosen);
  return result;
}

} // namespace kernelmill::watch
