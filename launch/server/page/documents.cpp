#include "launch/server/page/documents.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"

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

std::string name_of(wire::EpisodeRef::Reader x) {
  return fmt::format("g{}.e{}", x.getGroup(), x.getMember());
}

/// What the records of an episode come to, before it is a row: a run has many times more turns.
struct stored_episode_row {
  std::string task, outcome = "open", categories, stop_reason;
  uint64_t turns = 0, findings = 0;
  double committed_at = 0;
  std::optional<double> best_reward, best_speedup_lower, first_return;
  bool has_ended = false;
};

void keep_greater(std::optional<double>& best, double x) {
  if (!best || x > *best) best = x;
}

void note_turn(stored_episode_row& row, wire::TurnRecord::Reader x, uint32_t shared_turns) {
  auto verdict = x.getVerdict();
  if (row.turns++ == 0)
    row.task = x.getEpisode().getTask().cStr();
  else
    row.categories += ' ';
  row.categories += verdict.getCategory().cStr();
  row.findings += verdict.getFindings().size();
  row.committed_at = x.getCommittedAt();
  if (is_judged(verdict) && is_paid(verdict) && !std::isnan(verdict.getReward()))
    keep_greater(row.best_reward, verdict.getReward());
  if (auto counted = reporting::counted_speedup(x, shared_turns))
    keep_greater(row.best_speedup_lower, counted->low);
}

void note_end(stored_episode_row& row, wire::EpisodeRecord::Reader x) {
  if (row.turns == 0) {
    row.task = x.getEpisode().getTask().cStr();
    row.turns = x.getTurns();
  }
  row.has_ended = true;
  row.outcome = enum_name(capnp::DynamicEnum{x.getOutcome()});
  row.stop_reason = x.getStopReason().cStr();
  row.committed_at = x.getCommittedAt();
  auto returns = x.getReturns();
  if (returns.size() > 0 && !std::isnan(returns[0])) row.first_return = returns[0];
}

json or_null(const std::optional<double>& x) {
  return x ? json(*x) : json(nullptr);
}

json row_of_episode(const std::string& name, const stored_episode_row& x) {
  json row = {{"id", name},
              {"task", x.task},
              {"state", x.outcome},
              {"turns", x.turns},
              {"outcome", x.outcome},
              {"best_reward", or_null(x.best_reward)},
              {"best_speedup_lower", or_null(x.best_speedup_lower)},
              {"categories", x.categories},
              {"findings", x.findings},
              {"committed_at", x.committed_at}};
  if (!x.has_ended) return row;
  row["stop_reason"] = x.stop_reason;
  row["return"] = or_null(x.first_return);
  return row;
}

using episode_rows = std::map<std::pair<uint32_t, uint32_t>, json>;

expected<episode_rows> stored_rows(const watch::world& in, const run_directory& run) {
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  std::map<std::pair<uint32_t, uint32_t>, stored_episode_row> found;
  auto of = [&](wire::EpisodeRef::Reader x) -> stored_episode_row& {
    return found[{x.getGroup(), x.getMember()}];
  };
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    if (x.isTurn()) note_turn(of(x.getTurn().getEpisode()), x.getTurn(), *shared);
    if (x.isEpisode()) note_end(of(x.getEpisode().getEpisode()), x.getEpisode());
    return true;
  });
  KM_TRY(ok);
  episode_rows result;
  for (const auto& [at, x] : found)
    result.emplace_hint(result.end(), at,
                        row_of_episode(fmt::format("g{}.e{}", at.first, at.second), x));
  return result;
}

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

/// An evaluation, before it is a row: most are on other pages of the list.
struct slot_use {
  std::string lane, category;
  uint32_t group, member, turn;
  double begin, end, waited; ///< seconds
};

json row_of_use(const slot_use& x) {
  return {{"lane", x.lane},
          {"turn", fmt::format("g{}.e{}.t{}", x.group, x.member, x.turn)},
          {"begin", x.begin},
          {"end", x.end},
          {"waited_seconds", x.waited},
          {"category", x.category}};
}

/// Values by the position of their turn in its episode.
using by_position = std::map<uint32_t, std::vector<double>>;

/// Mean and band of each position. `logarithms`: of ratios, whose mean is geometric.
json positions_json(by_position all, bool logarithms) {
  auto result = json::array();
  for (auto& [position, values] : all) {
    std::sort(values.begin(), values.end());
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

json paged(std::vector<json> rows, const json& query, const char* name) {
  auto offset = std::min<uint64_t>(count_in(query, "offset", 0), rows.size());
  auto limit = count_in(query, "limit", 0);
  limit = std::min(limit == 0 ? rows_otherwise : limit, most_rows);
  json result = {{"matching", rows.size()}, {"offset", offset}};
  auto end = std::min<uint64_t>(rows.size(), offset + limit);
  auto shown = json::array();
  for (auto i = offset; i < end; ++i) shown.push_back(std::move(rows[i]));
  result[name] = std::move(shown);
  return result;
}

expected<json> episodes_document(const watch::world& in, const run_directory& run,
                                 const json& query) {
  auto rows = stored_rows(in, run);
  KM_TRY(rows);
  bool live = false;
  if (auto says = in.ask_run(run)) {
    live = true;
    add_live(*rows, watch::read_live({run, std::move(*says)}, watch::workers_of_nodes(in)));
  }
  std::vector<json> all;
  for (auto& [key, row] : *rows) all.push_back(std::move(row));
  auto total = all.size();
  auto chosen = watch::chosen_rows(std::move(all), query, keys_of_all_episodes());
  KM_TRY(chosen);
  auto result = paged(std::move(*chosen), query, "episodes");
  result["run"] = run.name;
  result["live"] = live;
  result["total"] = total;
  return result;
}

// By position and not by time: first turns come first, so that a curve over time would rise even
// where no turn is better than the one before it.
expected<json> positions_document(const watch::world& in, const run_directory& run, const json&) {
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  by_position rewards, speedups;
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    if (!x.isTurn()) return true;
    auto turn = x.getTurn();
    auto verdict = turn.getVerdict();
    if (turn.getTurn() >= *shared && is_judged(verdict) && is_paid(verdict) &&
        std::isfinite(verdict.getReward()))
      rewards[turn.getTurn()].push_back(verdict.getReward());
    if (auto counted = reporting::counted_speedup(turn, *shared))
      speedups[turn.getTurn()].push_back(counted->estimate);
    return true;
  });
  KM_TRY(ok);
  return json{{"run", run.name},
              {"reward", positions_json(std::move(rewards), false)},
              {"speedup", positions_json(std::move(speedups), true)}};
}

expected<json> findings_document(const watch::world& in, const run_directory& run,
                                 const json& query) {
  static const std::vector<std::string> keys{"turn",     "task",     "rule",    "severity",
                                             "evidence", "category", "outcome", "committed_at"};
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  std::vector<json> rows;
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    if (!x.isTurn()) return true;
    auto turn = x.getTurn();
    for (auto f : turn.getVerdict().getFindings())
      rows.push_back({{"turn", fmt::format("{}.t{}", name_of(turn.getEpisode()), turn.getTurn())},
                      {"task", std::string{turn.getEpisode().getTask()}},
                      {"rule", std::string{f.getRule()}},
                      {"severity", enum_name(capnp::DynamicEnum{f.getSeverity()})},
                      {"evidence", std::string{f.getEvidence()}},
                      {"category", std::string{turn.getVerdict().getCategory()}},
                      {"outcome", enum_name(capnp::DynamicEnum{turn.getVerdict().getOutcome()})},
                      {"committed_at", turn.getCommittedAt()}});
    return true;
  });
  KM_TRY(ok);
  auto chosen = watch::chosen_rows(std::move(rows), query, keys, "-committed_at");
  KM_TRY(chosen);
  return paged(std::move(*chosen), query, "findings");
}

expected<json> lanes_document(const watch::world& in, const run_directory& run, const json& query) {
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  std::vector<slot_use> uses;
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    if (!x.isTurn()) return true;
    auto turn = x.getTurn();
    auto facts = turn.getFacts().getEvaluation();
    if (facts.getSeconds() <= 0) return true;
    auto episode = turn.getEpisode();
    // The slot's part ends before what comes after it: profile and judgement.
    auto end =
        turn.getCommittedAt() - turn.getSeconds().getProfile() - turn.getSeconds().getJudge();
    auto lane = facts.getDeviceUuid().size() > 0 ? facts.getDeviceUuid() : facts.getDevice();
    uses.push_back({lane.cStr(), turn.getVerdict().getCategory().cStr(), episode.getGroup(),
                    episode.getMember(), turn.getTurn(), end - facts.getSeconds(), end,
                    std::max(0.0, turn.getSeconds().getEvaluate() - facts.getSeconds())});
    return true;
  });
  KM_TRY(ok);
  std::sort(uses.begin(), uses.end(),
            [](const slot_use& a, const slot_use& b) { return a.begin > b.begin; });
  auto result = paged(std::vector<json>(uses.size()), query, "evaluations");
  auto at = result["offset"].get<size_t>();
  for (auto& row : result["evaluations"]) row = row_of_use(uses[at++]);
  return result;
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
