#include "storage/journal/event_tags.hpp"

#include <array>
#include <cctype>
#include <string_view>

#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

struct renamed_key {
  const char* key; ///< of the line
  const char* tag;
};

// A key that has no row keeps its name, such as multiturn/success_rate.
constexpr std::array renamed_keys{
    renamed_key{"step", group_tag},
    renamed_key{"episodes", "Batch/NumTrajectories"},
    renamed_key{"turns", "Batch/NumTurns"},
    renamed_key{"open_turns", "Batch/OpenTurns"},
    renamed_key{"infrastructure_turns", "Batch/InfrastructureTurns"},
    renamed_key{"not_timed_turns", "Batch/NotTimedTurns"},
    renamed_key{"reward/mean", "Reward/Mean"},
    renamed_key{"reward/std", "Reward/StdDev"},
    renamed_key{"reward/min", "Reward/Min"},
    renamed_key{"reward/max", "Reward/Max"},
    renamed_key{"return/mean", "Return/Mean"},
    renamed_key{"return/std", "Return/StdDev"},
    renamed_key{"advantage/mean", "Advantage/Mean"},
    renamed_key{"advantage/std", "Advantage/Std"},
    renamed_key{"advantage/min", "Advantage/Min"},
    renamed_key{"advantage/max", "Advantage/Max"},
    renamed_key{"kernel/format_rate", "Kernel/FormatRate"},
    renamed_key{"kernel/compile_rate", "Kernel/CompileRate"},
    renamed_key{"kernel/compile_rate", "multiturn/compile_rate"},
    renamed_key{"kernel/correct_rate", "Kernel/CorrectRate"},
    renamed_key{"kernel/correct_rate", "multiturn/correct_rate"},
    renamed_key{"kernel/cheat_rate", "Kernel/CheatRate"},
    renamed_key{"kernel/mean_speedup", "Kernel/MeanSpeedup"},
    renamed_key{"time/step_max", "Timing/Rollout"},
    renamed_key{"time/step_mean", "Timing/EpisodeMean"},
    renamed_key{"time/eval_mean", "Timing/EvaluationMean"},
    renamed_key{"time/eval_max", "Timing/EvaluationMax"},
};

// Of tasks whose id says it: "kernelbench/level1/19_ReLU".
constexpr std::array level_keys{
    renamed_key{"reward/mean", "RewardMean"},
    renamed_key{"kernel/correct_rate", "CorrectRate"},
    renamed_key{"kernel/compile_rate", "CompileRate"},
};

constexpr std::array distributions{
    renamed_key{"reward", "Distributions/Rewards"},
    renamed_key{"speedup", "Distributions/Speedups"},
    renamed_key{"advantage", "Distributions/Advantages"},
};

constexpr std::string_view components = "reward_components/";

// "19" of ".../level19/..."; empty when there is none.
std::string level_in(const std::string& task) {
  constexpr std::string_view word = "/level";
  auto at = task.find(word);
  if (at == task.npos) return {};
  auto begin = at + word.size(), end = begin;
  while (end < task.size() && std::isdigit(static_cast<unsigned char>(task[end])) != 0) ++end;
  return end > begin && end < task.size() && task[end] == '/' ? task.substr(begin, end - begin)
                                                              : std::string{};
}

} // namespace

event_values group_event(const nlohmann::ordered_json& line, const group_values& values,
                         int64_t step, size_t groups) {
  event_values result;
  result.step = step;
  result.wall_time = line.value("timestamp", 0.0);
  auto add = [&](std::string tag, const nlohmann::ordered_json& value) {
    if (value.is_number()) result.scalars.emplace_back(std::move(tag), value.get<double>());
  };
  for (const auto& [key, value] : line.items()) {
    bool named = false;
    for (const auto& row : renamed_keys)
      if (key == row.key) {
        add(row.tag, value);
        named = true;
      }
    if (key.starts_with(components))
      add("RewardComponents/" + key.substr(components.size()), value);
    else if (!named && key.find('/') != key.npos)
      add(key, value);
  }
  result.scalars.emplace_back("Batch/NumGroups", 1);
  if (groups > 0)
    result.scalars.emplace_back("Progress/CompletionFraction",
                                static_cast<double>(step + 1) / static_cast<double>(groups));
  if (auto level = level_in(line.value("task", "")); !level.empty())
    for (const auto& row : level_keys)
      if (line.contains(row.key)) add("PerLevel/Level" + level + "/" + row.tag, line[row.key]);
  for (const auto& row : distributions)
    if (auto found = values.find(row.key); found != values.end())
      result.histograms.emplace_back(row.tag, found->second);
  return result;
}

} // namespace kernelmill
