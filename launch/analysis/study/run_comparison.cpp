#include "launch/analysis/study/run_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "launch/analysis/report/metrics.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::study {

namespace {

/// Rewards nearer than this are equal: they are sums of a few decimal parts.
constexpr double equal_rewards = 1e-9;

struct pair_of_tasks {
  std::string task;
  const task_scores &a, &b;
};

const task_identity& identity(const compared_run& run, const std::string& task) {
  static const task_identity unknown;
  auto found = run.tasks.find(task);
  return found == run.tasks.end() ? unknown : found->second;
}

bool is_held_out(const compared_run& run, const std::string& task) {
  return exports::split_of(task, identity(run, task).split) == "dev";
}

/// Tasks that figures are made of, and the others by what is wrong with them.
std::vector<pair_of_tasks> pair_up(const compared_run& a, const compared_run& b, bool held_out,
                                   json& named) {
  std::vector<pair_of_tasks> result;
  json only_a = json::array(), only_b = json::array(), changed = json::array();
  uint64_t passed_over = 0;
  for (const auto& [task, scores] : a.scores) {
    if (held_out && !is_held_out(a, task)) {
      ++passed_over;
      continue;
    }
    auto other = b.scores.find(task);
    const auto &x = identity(a, task), &y = identity(b, task);
    if (other == b.scores.end())
      only_a.push_back(task);
    else if (!x.digest.empty() && !y.digest.empty() && x.digest != y.digest)
      changed.push_back(task);
    else
      result.push_back({task, scores, other->second});
  }
  for (const auto& [task, scores] : b.scores)
    if (!a.scores.contains(task) && (!held_out || is_held_out(b, task))) only_b.push_back(task);
  named = {{"compared", result.size()},   {"only_a", std::move(only_a)},
           {"only_b", std::move(only_b)}, {"changed", std::move(changed)},
           {"held_out", held_out},        {"of_other_split", passed_over}};
  return result;
}

/// The end of a run counts the episodes that it lost and left open, and does not say of which
/// tasks: they count whole where no task of the run is left out. Those without a turn have no
/// record.
json left_out(const compared_run& run, const std::vector<pair_of_tasks>& pairs, bool of_b) {
  uint64_t infrastructure = 0, open = 0, counted = 0;
  for (const auto& x : pairs) {
    const auto& t = of_b ? x.b : x.a;
    infrastructure += t.infrastructure;
    open += t.open;
    counted += t.episodes.size();
  }
  auto lost = std::min(run.lost_open, open);
  bool whole = pairs.size() == run.scores.size();
  return {{"episodes", counted},
          {"infrastructure", infrastructure + (whole ? run.lost_open : lost)},
          {"open", open - lost}};
}

// -- statistics -----------------------------------------------------------------------------------

using measure = std::function<std::optional<double>(const task_scores&)>;

std::vector<reporting::scored> scored(const task_scores& x) {
  std::vector<reporting::scored> result;
  for (const auto& e : x.episodes)
    result.push_back(
        {e.correct, e.best_speedup ? std::optional{e.best_speedup->estimate} : std::nullopt});
  return result;
}

json optional_number(const std::optional<double>& x) {
  return x ? json(*x) : json(nullptr);
}

/// One row: the means of both, their difference and its interval, over tasks that have the value on
/// both sides.
json statistic(const std::string& name, const std::vector<pair_of_tasks>& pairs,
               const subset_draws& how, const measure& value) {
  std::vector<paired_value> values;
  for (const auto& x : pairs)
    if (auto a = value(x.a), b = value(x.b); a && b) values.push_back({*a, *b});
  auto found = compare_pairs(values, how);
  json result = {{"metric", name}, {"scale", "difference"}, {"tasks", values.size()}};
  for (const auto* key : {"a", "b", "difference", "low", "high", "no_interval"})
    result[key] = nullptr;
  if (!found) return result;
  if (found->no_interval != nullptr) result["no_interval"] = found->no_interval;
  result["a"] = found->a;
  result["b"] = found->b;
  result["difference"] = found->difference;
  result["low"] = optional_number(found->low);
  result["high"] = optional_number(found->high);
  return result;
}

/// A row of logarithms as one of ratios.
json as_ratios(json row) {
  row["scale"] = "ratio";
  for (const auto* key : {"a", "b", "difference", "low", "high"})
    if (row[key].is_number()) row[key] = std::exp(row[key].get<double>());
  return row;
}

json statistics(const std::vector<pair_of_tasks>& pairs, const comparison_options& by) {
  json result = json::array();
  result.push_back(statistic("reward", pairs, by.how, [](const auto& x) { return x.reward(); }));
  for (auto p : by.p)
    result.push_back(statistic(fmt::format("fast_{:g}", p), pairs, by.how, [p](const auto& x) {
      auto samples = scored(x);
      return reporting::fast_p(samples, p);
    }));
  for (auto k : by.k)
    result.push_back(statistic(fmt::format("pass@{}", k), pairs, by.how, [k](const auto& x) {
      return reporting::pass_at_k(x.episodes.size(), x.correct(), k);
    }));
  // Ratios are compared as logarithms: twice as fast and half as fast are as far from 1.
  auto speed = statistic("task_geomean_speedup", pairs, by.how, [](const auto& x) {
    auto mean = x.geomean_speedup();
    return mean ? std::optional{std::log(*mean)} : std::nullopt;
  });
  result.push_back(as_ratios(std::move(speed)));
  return result;
}

// -- wins -----------------------------------------------------------------------------------------

/// The better run at a task: above 0 B, below 0 A; none: the two cannot be compared.
using referee = std::function<std::optional<int>(const pair_of_tasks&)>;

std::optional<int> by_reward(const pair_of_tasks& x) {
  auto a = x.a.reward(), b = x.b.reward();
  if (!a || !b) return std::nullopt;
  return std::abs(*b - *a) <= equal_rewards ? 0 : *b > *a ? 1 : -1;
}

std::optional<int> by_correct(const pair_of_tasks& x) {
  if (x.a.episodes.empty() || x.b.episodes.empty()) return std::nullopt;
  auto a = x.a.correct() * x.b.episodes.size(), b = x.b.correct() * x.a.episodes.size();
  return a == b ? 0 : b > a ? 1 : -1;
}

std::optional<int> by_best_speedup(const pair_of_tasks& x) {
  auto a = x.a.best_speedup(), b = x.b.best_speedup();
  if (!a || !b) return std::nullopt;
  return a->overlaps(*b) ? 0 : b->low > a->high ? 1 : -1;
}

json wins(const char* by, const std::vector<pair_of_tasks>& pairs, const referee& rule) {
  win_count count;
  for (const auto& x : pairs) {
    auto better = rule(x);
    if (!better) continue;
    count.wins += *better > 0;
    count.losses += *better < 0;
    count.ties += *better == 0;
  }
  return {{"by", by},
          {"wins", count.wins},
          {"losses", count.losses},
          {"ties", count.ties},
          {"p", count.p()}};
}

// -- task by task ---------------------------------------------------------------------------------

json side(const task_scores& x) {
  return {{"episodes", x.episodes.size()},
          {"correct", x.correct()},
          {"reward", optional_number(x.reward())},
          {"best_speedup", reporting::to_json(x.best_speedup())},
          {"geomean_speedup", optional_number(x.geomean_speedup())}};
}

json task_row(const pair_of_tasks& x) {
  auto a = x.a.reward(), b = x.b.reward();
  auto speed = by_best_speedup(x);
  return {{"task", x.task},
          {"a", side(x.a)},
          {"b", side(x.b)},
          {"difference", a && b ? json(*b - *a) : json(nullptr)},
          {"faster", !speed       ? json(nullptr)
                     : *speed > 0 ? "b"
                     : *speed < 0 ? "a"
                                  : "neither"}};
}

} // namespace

json compare_scores(const compared_run& a, const compared_run& b, const comparison_options& by) {
  json named;
  auto pairs = pair_up(a, b, by.held_out, named);
  json result = {{"tasks", std::move(named)},
                 {"left_out", {{"a", left_out(a, pairs, false)}, {"b", left_out(b, pairs, true)}}}};
  result["statistics"] = statistics(pairs, by);
  result["intervals"] = {{"level", 0.95},
                         {"method", "means of subsets of the tasks"},
                         {"least_tasks", least_tasks},
                         {"all_subsets_up_to_tasks", most_tasks_of_all_subsets},
                         {"draws", by.how.count},
                         {"seed", by.how.seed}};
  result["wins"] = {wins("reward", pairs, by_reward), wins("correct", pairs, by_correct),
                    wins("best_speedup", pairs, by_best_speedup)};
  auto& rows = result["by_task"] = json::array();
  for (const auto& x : pairs) rows.push_back(task_row(x));
  return result;
}

} // namespace kernelmill::study
