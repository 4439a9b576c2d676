// One screen of `top`. What it takes is small however many episodes live: totals, and the first
// rows.

#include <algorithm>
#include <map>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/policy_health.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

namespace {

json slots_of(const live_view& x) {
  auto result = json::array();
  for (const auto& a : x.actors) {
    if (a.role != "gpu_runner" && a.role != "compiler") continue;
    result.push_back({{"actor", a.role},
                      {"id", a.id},
                      {"state", a.state},
                      {"detail", a.detail},
                      {"done", a.numbers.value("done", 0.0)},
                      {"mailbox", a.mailbox}});
  }
  return result;
}

// The rows that say most: stuck ones, those that failed and are tried again, then the longest in
// their state.
std::vector<const episode_row*> first_rows(const live_view& view, size_t limit) {
  std::vector<const episode_row*> all;
  all.reserve(view.episodes.size());
  for (const auto& x : view.episodes) all.push_back(&x);
  auto weight = [](const episode_row& x) {
    if (x.phase == "stuck") return 0;
    if (x.tried || (x.job && !x.job->last_error.empty())) return 1;
    return 2;
  };
  auto before = [&](const episode_row* a, const episode_row* b) {
    auto wa = weight(*a), wb = weight(*b);
    return wa != wb ? wa < wb : a->since < b->since;
  };
  auto end = all.begin() + static_cast<ptrdiff_t>(std::min(limit, all.size()));
  std::partial_sort(all.begin(), end, all.end(), before);
  all.erase(end, all.end());
  return all;
}

json policy_json(const live_view& x) {
  json result = {{"state", x.policy_state},       {"in_flight", x.policy_in_flight},
                 {"window", x.policy_window},     {"queued", x.policy_queued},
                 {"tried_again", x.tried.size()}, {"mean_seconds", x.policy_mean_seconds}};
  auto servers = json::array();
  for (const auto& health : health_of_policy(x)) {
    if (health.server.empty()) {
      result["health"] = health.words;
      result["is_well"] = health.is_well;
    } else {
      servers.push_back(
          {{"server", health.server}, {"health", health.words}, {"is_well", health.is_well}});
    }
  }
  result["servers"] = std::move(servers);
  return result;
}

/// At most `limit` rows of those that the query asks for, in its order.
expected<json> episodes_json(const live_view& x, const json& query, size_t limit) {
  bool chooses = !text_in(query, "where").empty() || !text_in(query, "sort").empty();
  std::vector<json> rows;
  for (const auto* e : first_rows(x, chooses ? x.episodes.size() : limit))
    rows.push_back(to_json(x, *e));
  if (!chooses) return json(std::move(rows));
  auto chosen = chosen_rows(std::move(rows), query, keys_of_episodes());
  KM_TRY(chosen);
  if (chosen->size() > limit) chosen->resize(limit);
  return json(std::move(*chosen));
}

expected<json> run_json(const live_view& x, const json& query, size_t limit) {
  std::map<std::string, uint64_t> states;
  for (const auto& e : x.episodes) ++states[e.state];
  json result = {
      {"run", x.run},           {"state", x.state},       {"episodes", x.planned},
      {"ended", x.ended},       {"live", x.live},         {"turns", x.turns},
      {"accepted", x.accepted}, {"rejected", x.rejected}, {"infrastructure", x.infrastructure}};
  result["states"] = json::object();
  for (const auto& [state, count] : states) result["states"][state] = count;
  result["policy"] = policy_json(x);
  result["queues"] = json::array();
  for (const auto& q : x.queues)
    if (q.name != "policy")
      result["queues"].push_back({{"queue", q.name},
                                  {"state", q.state},
                                  {"waiting", q.waiting},
                                  {"leased", q.leased},
                                  {"workers", q.workers},
                                  {"places", q.credits},
                                  {"done", q.done},
                                  {"mean_seconds", q.mean_seconds},
                                  {"oldest_wait_seconds", q.oldest_wait_seconds}});
  result["slots"] = slots_of(x);
  auto rows = episodes_json(x, query, limit);
  KM_TRY(rows);
  result["rows"] = std::move(*rows);
  return result;
}

} // namespace

expected<json> top_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run", "where", "sort", "limit"}));
  auto found = live_runs(in, text_in(query, "run"));
  KM_TRY(found);
  KM_TRY(chosen_rows({}, query, keys_of_episodes())); // an error shows also when nothing is live
  auto limit = std::min<uint64_t>(count_in(query, "limit", 50), 1000);
  auto workers = workers_of_nodes(in);
  json result = {{"at", seconds_since_1970()}, {"runs", json::array()}};
  for (const auto& one : *found) {
    auto run = run_json(read_live(one, workers), query, limit);
    KM_TRY(run);
    result["runs"].push_back(std::move(*run));
  }
  result["nodes"] = json::array();
  if (in.status) {
    auto nodes = nodes_view(in, json::object());
    if (nodes) result["nodes"] = (*nodes)["nodes"];
  }
  return result;
}

} // namespace kernelmill::watch
