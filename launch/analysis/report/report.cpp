#include "launch/analysis/report/report.hpp"

#include <algorithm>
#include <map>

#include "launch/analysis/report/metrics.hpp"
#include "launch/analysis/report/speedups.hpp"

namespace kernelmill::reporting {

namespace {

struct problem_count {
  uint64_t samples = 0, correct = 0;
};

/// What is gathered of a group before its figures are known.
struct gathered {
  report_row row;
  std::vector<scored> by_estimate, by_low;
  std::map<std::string, problem_count> problems;
  std::vector<double> speedups, speedups_of_faster, turns;
};

void take(gathered& to, const sample& x) {
  auto& row = to.row;
  ++row.samples;
  row.compiled += x.compiled;
  row.correct += x.correct;
  row.not_timed += x.correct && x.category == "not_timed";
  auto& problem = to.problems[x.task];
  ++problem.samples;
  problem.correct += x.correct;
  scored estimate{x.correct, {}}, low{x.correct, {}};
  if (x.speedup) {
    estimate.speedup = x.speedup->estimate;
    low.speedup = x.speedup->low;
  }
  to.by_estimate.push_back(estimate);
  to.by_low.push_back(low);
  if (x.turns_to_first_correct) to.turns.push_back(*x.turns_to_first_correct);
  if (!x.correct || !x.speedup) return;
  ++row.timed;
  row.with_interval += x.speedup->low.has_value();
  to.speedups.push_back(x.speedup->estimate);
  if (x.speedup->low)
    row.best_speedup_lower = std::max(row.best_speedup_lower.value_or(0), *x.speedup->low);
  if (x.speedup->estimate > 1) to.speedups_of_faster.push_back(x.speedup->estimate);
}

void take(gathered& to, const left_out& x) {
  to.row.infrastructure += x.why == left_out::reason::infrastructure;
  to.row.open += x.why == left_out::reason::open;
}

pass_row pass_of(const gathered& from, uint64_t k) {
  std::vector<double> values;
  for (const auto& [task, x] : from.problems)
    if (auto value = pass_at_k(x.samples, x.correct, k)) values.push_back(*value);
  return {k, mean(values), values.size()};
}

report_row finish(gathered x, const thresholds& at) {
  auto& row = x.row;
  row.problems = x.problems.size();
  for (auto p : at.p)
    row.fast.push_back(
        {p, fast_count(x.by_estimate, p), fast_count(x.by_low, p), fast_p(x.by_estimate, p)});
  row.fast_1_by_low = fast_count(x.by_low, 1);
  for (auto k : at.k) row.pass.push_back(pass_of(x, k));
  row.geomean_speedup = {geomean_speedup(x.speedups), x.speedups.size()};
  row.geomean_speedup_of_faster = {geomean_speedup(x.speedups_of_faster),
                                   x.speedups_of_faster.size()};
  row.turns_mean = {mean(x.turns), x.turns.size()};
  row.turns_median = {median(x.turns), x.turns.size()};
  return std::move(row);
}

// The row of a task.
task_place row_of(const std::string& task, const sample_set& from, grouping by) {
  if (by == grouping::level) return place_of(task);
  auto known = from.kinds.find(task);
  if (known == from.kinds.end()) return {"unknown", {}, {}};
  const auto& name = by == grouping::verb ? known->second.verb : known->second.family;
  return {name.empty() ? "unknown" : name, {}, {}};
}

} // namespace

report make_report(const sample_set& from, const thresholds& at, grouping by) {
  // Levels by number, then other suites by name.
  std::map<std::pair<uint32_t, std::string>, gathered> groups;
  gathered all;
  all.row.group = "all";
  auto add = [&](const auto& x) {
    auto place = row_of(x.task, from, by);
    auto& group = groups[{place.level.value_or(UINT32_MAX), place.group}];
    group.row.group = place.group;
    group.row.level = place.level;
    take(group, x);
    take(all, x);
  };
  for (const auto& x : from.samples) add(x);
  for (const auto& x : from.without) add(x);
  report result;
  result.by = by;
  result.knows_left_out = from.knows_left_out;
  for (auto& [name, group] : groups) result.groups.push_back(finish(std::move(group), at));
  result.all = finish(std::move(all), at);
  return result;
}

} // namespace kernelmill::reporting
