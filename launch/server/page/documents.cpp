#include "launch/server/page/documents.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/watch/filter.hpp"
#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/server/page/listing.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"

namespace kernelmill::page {

namespace {

constexpr uint64_t rows_otherwise = 100;
constexpr uint64_t most_rows = 10'000;

const std::vector<std::string>& keys_of_all_episodes() {
  static const std::vector<std::string> all{
      "id",           "task",        "state",      "phase",       "age_seconds",
      "turn",         "turns",       "max_turns",  "queue",       "position",
      "wait_seconds", "worker",      "outcome",    "best_reward", "best_speedup_lower",
      "return",       "stop_reason", "categories", "findings",    "committed_at",
      "last_error",   "detail"};
  return all;
}

json or_null(const std::optional<double>& x) {
  return x ? json(*x) : json(nullptr);
}

void add_episode_row(row_builder& to, const episode_facts& x) {
  to.add("id", name_of(x));
  to.add("task", x.task);
  to.add("state", x.outcome);
  to.add("turns", x.turns > 0 ? x.turns : x.said_turns);
  to.add("outcome", x.outcome);
  to.add("best_reward", or_null(x.best_reward));
  to.add("best_speedup_lower", reporting::lower_json(x.best_speedup));
  to.add("categories", x.categories);
  to.add("findings", x.findings);
  to.add("committed_at", x.committed_at);
  if (!x.has_ended) return;
  to.add("stop_reason", x.stop_reason);
  to.add("return", or_null(x.first_return));
}

json row_of_episode(const episode_facts& x) {
  row_builder to;
  add_episode_row(to, x);
  return std::move(to.row);
}

using episode_rows = std::map<std::pair<uint32_t, uint32_t>, json>;

/// What is live now stands over what is stored.
void add_live(episode_rows& rows, const watch::live_view& live) {
  for (const auto& x : live.episodes) {
    auto parts = parse_name(x.id);
    if (!parts || !parts->member) continue;
    auto& row = rows[{parts->group, *parts->member}];
    if (row.is_object() && row.contains("stop_reason")) continue; // ended since it was asked
    auto now = to_json(live, x);
    auto stored = row;
    row = now;
    row.erase("run");
    row["outcome"] = "open";
    row["turns"] = stored.is_object() ? stored["turns"] : json(0);
    row["categories"] = stored.is_object() ? stored["categories"] : json("");
    row["findings"] = stored.is_object() ? stored["findings"] : json(0);
    if (stored.is_object()) {
      row["best_reward"] = stored["best_reward"];
      row["best_speedup_lower"] = stored["best_speedup_lower"];
    }
  }
}

void add_use_row(row_builder& to, const slot_use& x) {
  to.add("lane", x.lane);
  to.add("turn", fmt::format("g{}.e{}.t{}", x.group, x.member, x.turn));
  to.add("begin", x.begin);
  to.add("end", x.end);
  to.add("waited_seconds", x.waited);
  to.add("category", x.category);
}

/// Mean and band of each position. `logarithms`: of ratios, whose mean is geometric.
json positions_json(const by_position& all, bool logarithms) {
  auto result = json::array();
  for (const auto& [position, values] : all) {
    double sum = 0;
    for (auto x : values) sum += logarithms ? std::log(x) : x;
    auto mean = sum / static_cast<double>(values.size());
    auto rank = [&, &values = values](double share) {
      return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
    };
    result.push_back({{"turn", position + 1},
                      {"count", values.size()},
                      {"mean", logarithms ? std::exp(mean) : mean},
                      {"low", rank(0.1)},
                      {"high", rank(0.9)}});
  }
  return result;
}

} // namespace

expected<run_directory> run_below(const watch::world& in, const std::string& name) {
  bool plain = !name.empty() && name[0] != '.' &&
               name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789._-") == std::string::npos;
  if (!plain)
    return configuration_error("not_found", "failed to find a run: this is no name of one",
                               "GET /api/v1/runs lists them");
  return find_run(in.root + "/" + name, in.root);
}

namespace {

/// The part of `count` rows that the query asks for: the first one, and the one behind the last.
std::pair<uint64_t, uint64_t> part_of(uint64_t count, const json& query) {
  auto offset = std::min<uint64_t>(count_in(query, "offset", 0), count);
  auto limit = count_in(query, "limit", 0);
  limit = std::min(limit == 0 ? rows_otherwise : limit, most_rows);
  return {offset, std::min<uint64_t>(count, offset + limit)};
}

} // namespace

json paged(std::vector<json> rows, const json& query, const char* name) {
  auto [begin, end] = part_of(rows.size(), query);
  json result = {{"matching", rows.size()}, {"offset", begin}};
  auto shown = json::array();
  for (auto i = begin; i < end; ++i) shown.push_back(std::move(rows[i]));
  result[name] = std::move(shown);
  return result;
}

namespace {

constexpr const char* place = "#"; ///< of a row among all: no key has this name

/// What rows are chosen by. Errors: "usage".
expected<std::vector<std::string>> asked_keys(const json& query,
                                              const std::vector<std::string>& keys) {
  auto where = watch::parse_condition(text_in(query, "where"), {keys, {}, {}});
  KM_TRY(where);
  auto result = std::move(where->keys);
  if (auto sort = text_in(query, "sort"); !sort.empty()) {
    auto key = watch::known_key(sort.starts_with("-") ? sort.substr(1) : sort, {keys, {}, {}});
    KM_TRY(key);
    result.push_back(std::move(*key));
  }
  return result;
}

} // namespace

expected<json> listed(size_t count, const row_maker& make, const json& query,
                      const std::vector<std::string>& keys, const char* name) {
  auto asked = asked_keys(query, keys);
  KM_TRY(asked);
  auto whole = [&](size_t i) {
    row_builder to;
    make(i, to);
    return std::move(to.row);
  };
  if (asked->empty()) {
    auto [begin, end] = part_of(count, query);
    json result = {{"matching", count}, {"offset", begin}};
    auto shown = json::array();
    for (auto i = begin; i < end; ++i) shown.push_back(whole(i));
    result[name] = std::move(shown);
    return result;
  }
  std::vector<json> rows;
  rows.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    row_builder to{&*asked};
    make(i, to);
    to.row[place] = i;
    rows.push_back(std::move(to.row));
  }
  auto chosen = watch::chosen_rows(std::move(rows), query, keys);
  KM_TRY(chosen);
  auto result = paged(std::move(*chosen), query, name);
  for (auto& row : result[name]) row = whole(row[place].get<size_t>());
  return result;
}

expected<json> episodes_document(const watch::world& in, const run_directory& run,
                                 const run_facts& facts, const json& query) {
  const auto& stored = facts.episodes;
  auto says = in.ask_run(run);
  auto total = stored.size();
  auto result = [&]() -> expected<json> {
    if (!says)
      return listed(
          stored.size(), [&](size_t i, row_builder& to) { add_episode_row(to, stored[i]); }, query,
          keys_of_all_episodes(), "episodes");
    episode_rows rows;
    for (const auto& x : stored)
      rows.emplace_hint(rows.end(), std::pair{x.group, x.member}, row_of_episode(x));
    add_live(rows, watch::read_live({run, std::move(*says)}, watch::workers_of_nodes(in)));
    std::vector<json> all;
    for (auto& [key, row] : rows) all.push_back(std::move(row));
    total = all.size();
    auto chosen = watch::chosen_rows(std::move(all), query, keys_of_all_episodes());
    KM_TRY(chosen);
    return paged(std::move(*chosen), query, "episodes");
  }();
  KM_TRY(result);
  (*result)["run"] = run.name;
  (*result)["live"] = says.has_value();
  (*result)["total"] = total;
  return result;
}

// By position and not by time: first turns come first, so that a curve over time would rise even
// where no turn is better than the one before it.
expected<json> positions_document(const run_facts& facts, const json&) {
  return json{{"run", facts.run},
              {"reward", positions_json(facts.rewards, false)},
              {"speedup", positions_json(facts.speedups, true)}};
}

expected<json> findings_document(const run_facts& facts, const json& query) {
  static const std::vector<std::string> keys{"turn",     "task",     "rule",    "severity",
                                             "evidence", "category", "outcome", "committed_at"};
  auto add = [&](size_t i, row_builder& to) {
    const auto& x = facts.findings[i];
    to.add("turn", fmt::format("g{}.e{}.t{}", x.group, x.member, x.turn));
    to.add("task", x.task);
    to.add("rule", x.rule);
    to.add("severity", x.severity);
    to.add("evidence", x.evidence);
    to.add("category", x.category);
    to.add("outcome", x.outcome);
    to.add("committed_at", x.committed_at);
  };
  return listed(facts.findings.size(), add, query, keys, "findings");
}

expected<json> lanes_document(const run_facts& facts, const json& query) {
  auto add = [&](size_t i, row_builder& to) { add_use_row(to, facts.uses[i]); };
  return listed(facts.uses.size(), add, query, {}, "evaluations");
}

expected<json> policies_document(const watch::world& in) {
  auto found = watch::live_runs(in, {});
  KM_TRY(found);
  auto rows = json::array();
  for (const auto& one : *found) {
    auto view = watch::read_live(one);
    for (const auto& x : view.actors) {
      if (!x.role.starts_with("policy_")) continue;
      rows.push_back({{"run", view.run},
                      {"actor", x.role},
                      {"id", x.id},
                      {"state", x.state},
                      {"detail", x.detail},
                      {"numbers", x.numbers}});
    }
    for (const auto& [episode, x] : view.tried)
      rows.push_back({{"run", view.run},
                      {"actor", "policy_request"},
                      {"id", episode},
                      {"state", x.state},
                      {"detail", x.last_error},
                      {"numbers", {{"attempts", x.attempts}, {"due_seconds", x.due_seconds}}}});
  }
  json result{{"policies", std::move(rows)}};
  if (in.servers) {
    auto servers = in.servers();
    KM_TRY(servers);
    result["servers"] = servers->value("servers", json::array());
  }
  return result;
}

} // namespace kernelmill::page
