#include "launch/server/page/summaries.hpp"

#include <fstream>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "launch/analysis/library/best_over_runs.hpp"
#include "launch/analysis/library/kernel_library.hpp"
#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/run_row.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "launch/analysis/watch/views.hpp"
#include "launch/server/page/documents.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

struct task_so_far {
  uint64_t episodes = 0, turns = 0, accepted = 0, findings = 0;
  double reward_sum = 0; ///< of the best turn of each rewarded episode
  uint64_t rewarded = 0;
  std::optional<reporting::measured_speedup> best;
  std::string best_turn;
};

void add_episode(task_so_far& to, const episode_facts& x) {
  ++to.episodes;
  to.turns += x.turns;
  to.accepted += x.accepted_turns;
  to.findings += x.findings;
  if (x.best_reward) {
    to.reward_sum += *x.best_reward;
    ++to.rewarded;
  }
  if (reporting::keep_best(to.best, x.best_speedup))
    to.best_turn = fmt::format("{}.t{}", name_of(x), x.best_turn);
}

json row_of_task(std::string_view task, const task_so_far& x) {
  auto reward =
      x.rewarded > 0 ? json(x.reward_sum / static_cast<double>(x.rewarded)) : json(nullptr);
  return {{"task", task},
          {"episodes", x.episodes},
          {"turns", x.turns},
          {"accepted", x.accepted},
          {"reward", std::move(reward)},
          {"best_speedup_lower", reporting::lower_json(x.best)},
          {"best_turn", x.best_turn},
          {"findings", x.findings}};
}

} // namespace

expected<json> tasks_document(const run_facts& facts, const json& query) {
  static const std::vector<std::string> keys{"task",   "episodes",           "turns",   "accepted",
                                             "reward", "best_speedup_lower", "findings"};
  std::map<std::string_view, task_so_far> tasks;
  for (const auto& x : facts.episodes)
    if (x.turns > 0) add_episode(tasks[x.task], x);
  std::vector<json> rows;
  for (const auto& [task, x] : tasks) rows.push_back(row_of_task(task, x));
  auto chosen = watch::chosen_rows(std::move(rows), query, keys);
  KM_TRY(chosen);
  return paged(std::move(*chosen), query, "tasks");
}

expected<json> runs_document(const watch::world& in, const json& query, kept_runs& kept) {
  auto rows = kept.rows.of_all(in.root, [&](const std::string& name) {
    auto row = watch::row_of_run(in, name);
    row["name"] = name; // by which this API knows it
    return row;
  });
  auto chosen = watch::chosen_rows(std::move(rows), query, watch::keys_of_runs());
  KM_TRY(chosen);
  auto result = paged(std::move(*chosen), query, "runs");
  result["root"] = in.root;
  return result;
}

kernels_of_run kernels_of(const watch::world& in, const std::string& name) {
  kernels_of_run result{name, {}, {}};
  auto read = [&]() -> expected<void> {
    auto run = find_run(in.root + "/" + name, in.root);
    KM_TRY(run);
    auto from = watch::open_store_of(in, *run);
    KM_TRY(from);
    library::kernels found;
    KM_TRY(found.add(*run, **from));
    result.best = found.best();
    return {};
  };
  if (auto done = read(); !done) result.why = done.error().message;
  return result;
}

expected<json> kernels_document(const watch::world& in, const json& query, kept_runs& kept) {
  static const std::vector<std::string> keys{
      "task",        "device", "shape",   "baseline",
      "language",    "run",    "model",   "best_speedup_lower",
      "estimate",    "high",   "samples", "kernels",
      "committed_at"};
  auto runs =
      kept.kernels.of_all(in.root, [&](const std::string& name) { return kernels_of(in, name); });
  auto unreadable = json::array();
  std::vector<std::vector<library::kernel>> found;
  for (auto& x : runs) {
    if (!x.why.empty()) unreadable.push_back({{"run", x.run}, {"why", x.why}});
    found.push_back(std::move(x.best));
  }
  std::vector<json> rows;
  for (const auto& x : library::best_over_runs(found)) rows.push_back(library::to_json(x));
  auto chosen = watch::chosen_rows(std::move(rows), query, keys);
  KM_TRY(chosen);
  auto result = paged(std::move(*chosen), query, "kernels");
  result["unreadable"] = std::move(unreadable);
  return result;
}

expected<json> config_document(const run_directory& run) {
  std::ifstream in{run.config_file()};
  auto read = json::parse(in, nullptr, false);
  if (!in || read.is_discarded())
    return configuration_error("not_found",
                               "failed to read " + run.config_file() + ": it is no readable JSON",
                               "`kernelmill fsck` looks at the run's folder");
  return json{{"run", run.name}, {"config", std::move(read)}};
}

} // namespace kernelmill::page
