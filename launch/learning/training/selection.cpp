#include "launch/learning/training/selection.hpp"

#include <algorithm>
#include <map>

#include "launch/analysis/report/sample.hpp"
#include "launch/analysis/study/paired.hpp"
#include "launch/config/paths.hpp"
#include "launch/node/task_choice.hpp"

namespace kernelmill::training {

namespace {

tl::unexpected<error> both_sides(const std::string& train, const std::string& held_out) {
  return configuration_error(
      "config_inconsistent",
      "failed to hold tasks out: " +
          (train == held_out ? "'" + train + "' is in tasks.train and in tasks.held_out"
                             : "'" + train + "' of tasks.train has the same files as '" + held_out +
                                   "' of tasks.held_out"),
      "leave it out on one side, such as with \"!" + held_out + "\" in tasks.train");
}

bool has_word(const std::vector<std::string>& all, const std::string& x) {
  return all.empty() || std::find(all.begin(), all.end(), x) != all.end();
}

} // namespace

expected<chosen_tasks> choose_tasks(const train_config& config) {
  auto roots = config.tasks_root.empty() ? default_tasks_roots() : task_roots{config.tasks_root};
  auto ids = list_tasks(roots);
  KM_TRY(ids);
  auto train = select_tasks(*ids, config.train);
  KM_TRY(train);
  chosen_tasks result;
  if (!config.held_out.empty()) {
    auto held_out = select_tasks(*ids, config.held_out);
    KM_TRY(held_out);
    result.held_out = std::move(*held_out);
  }
  std::map<std::string, std::string> by_digest;
  for (const auto& id : result.held_out) {
    auto x = load_task(roots, id);
    KM_TRY(x);
    by_digest.emplace((*x)->digest, id);
    result.all.push_back(std::move(*x));
  }
  for (const auto& id : *train) {
    auto x = load_task(roots, id);
    KM_TRY(x);
    if (auto same = by_digest.find((*x)->digest); same != by_digest.end())
      return both_sides(id, same->second);
    if (std::find(result.held_out.begin(), result.held_out.end(), id) != result.held_out.end())
      return both_sides(id, id);
    auto level = reporting::place_of(id).level;
    result.train.push_back({id, (*x)->difficulty, level ? std::to_string(*level) : std::string{}});
    result.all.push_back(std::move(*x));
  }
  for (size_t i = 0; i < std::max<size_t>(config.stages.size(), 1); ++i) {
    auto some = tasks_of(config, result, i);
    KM_TRY(some);
  }
  return result;
}

size_t stage_of(const std::vector<stage>& stages, uint64_t step,
                const std::vector<double>& correct) {
  size_t now = 0;
  for (uint64_t x = 0; x <= step; ++x)
    while (now + 1 < stages.size()) {
      const auto& next = stages[now + 1];
      bool earned = next.at_correct > 0 && x > 0 && x - 1 < correct.size() &&
                    correct[x - 1] >= next.at_correct;
      if (x < next.from && !earned) break;
      ++now;
      if (earned) break; // what earned one stage does not earn the next
    }
  return now;
}

expected<std::vector<std::string>> tasks_of(const train_config& config, const chosen_tasks& tasks,
                                            size_t stage) {
  std::vector<std::string> result;
  for (const auto& x : tasks.train) result.push_back(x.id);
  auto name = "stages[" + std::to_string(stage) + "]";
  if (stage < config.stages.size()) {
    const auto& x = config.stages[stage];
    if (!x.tasks.empty()) {
      auto some = select_tasks(result, x.tasks);
      KM_TRY(some);
      result = std::move(*some);
    }
    for (const auto& one : tasks.train)
      if (!has_word(x.difficulties, one.difficulty) || !has_word(x.levels, one.level))
        std::erase(result, one.id);
  }
  if (result.empty())
    return configuration_error("config_inconsistent",
                               "failed to plan the training: " + name + " leaves no task",
                               "`kernelmill task list` shows difficulties and ids");
  if (config.groups > result.size() && config.groups % result.size() != 0)
    return configuration_error(
        "config_inconsistent",
        "failed to plan the training: batch.groups is " + std::to_string(config.groups) + ", and " +
            (config.stages.empty() ? "tasks.train has " : name + " leaves ") +
            std::to_string(result.size()) + " tasks",
        "make it at most so many, or a multiple");
  return result;
}

std::vector<std::string> draw_tasks(std::vector<std::string> from, size_t count, uint64_t seed,
                                    uint64_t step, uint64_t round) {
  study::splitmix64 random{study::splitmix64{seed * 1'000'003 + step}.next() + round};
  for (size_t i = 0; i + 1 < from.size(); ++i)
    std::swap(from[i], from[i + random.below(from.size() - i)]);
  from.resize(std::min(count, from.size()));
  std::sort(from.begin(), from.end());
  return from;
}

} // namespace kernelmill::training
