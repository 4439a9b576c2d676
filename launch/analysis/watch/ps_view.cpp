// The live episodes, with what each waits for, and totals.

#include <algorithm>
#include <iterator>
#include <map>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

const std::vector<std::string>& keys_of_episodes() {
  static const std::vector<std::string> all{"run",          "id",
                                            "state",        "phase",
                                            "age_seconds",  "task",
                                            "turn",         "max_turns",
                                            "queue",        "position",
                                            "wait_seconds", "worker",
                                            "best_reward",  "best_speedup_lower",
                                            "attempt",      "last_error",
                                            "detail"};
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
                                {"mean_seconds", q.mean_seconds},
                                {"oldest_wait_seconds", q.oldest_wait_seconds}});
  return result;
}

} // namespace

namespace {

/// The rows from `offset` on, at most `limit` (0: all). Rows are dear where ten thousand episodes
/// live, so no others are made.
std::vector<json> rows_of(const std::vector<live_view>& views, uint64_t offset, uint64_t limit) {
  std::vector<json> result;
  uint64_t number = 0;
  for (const auto& view : views)
    for (const auto& x : view.episodes) {
      if (number++ < offset) continue;
      if (limit > 0 && result.size() == limit) return result;
      result.push_back(to_json(view, x));
    }
  return result;
}

} // namespace

expected<json> ps_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run", "where", "sort", "offset", "limit"}));
  auto found = live_runs(in, text_in(query, "run"));
  KM_TRY(found);
  // An error of a condition must show also when nothing is live.
  KM_TRY(chosen_rows({}, query, keys_of_episodes()));
  auto workers = workers_of_nodes(in);
  json runs = json::array();
  std::vector<live_view> views;
  uint64_t total = 0;
  for (const auto& one : *found) {
    views.push_back(read_live(one, workers));
    runs.push_back(totals_of(views.back()));
    total += views.back().episodes.size();
  }
  auto offset = count_in(query, "offset", 0), limit = count_in(query, "limit", 0);
  auto matching = total;
  std::vector<json> rows;
  if (text_in(query, "where").empty() && text_in(query, "sort").empty()) {
    rows = rows_of(views, offset, limit);
  } else {
    auto chosen = chosen_rows(rows_of(views, 0, 0), query, keys_of_episodes());
    KM_TRY(chosen);
    matching = chosen->size();
    auto first = chosen->begin() + static_cast<ptrdiff_t>(std::min(offset, matching));
    auto count = static_cast<uint64_t>(chosen->end() - first);
    auto last = first + static_cast<ptrdiff_t>(limit > 0 ? std::min(limit, count) : count);
    rows.assign(std::make_move_iterator(first), std::make_move_iterator(last));
  }
  json result;
  result["runs"] = std::move(runs);
  result["live"] = total;
  result["matching"] = matching;
  result["offset"] = std::min(offset, matching);
  result["episodes"] = std::move(rows);
  return result;
}

} // namespace kernelmill::watch
