#include "launch/analysis/report/kernelbench_folder.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::reporting {

namespace {

using json = nlohmann::ordered_json;

bool is_problem(const sample& x) {
  auto at = place_of(x.task);
  return at.level && at.problem;
}

/// The time that stands to the sample's own as its speedup says.
json mean_of(const sample& x) {
  if (!x.speedup || !x.candidate) return nullptr;
  auto ms = x.speedup->estimate * x.candidate->ms;
  return std::isfinite(ms) ? json(ms) : json(nullptr);
}

/// "19_ReLU.py": the benchmark's name of the problem.
std::string file_name(const std::string& task) {
  return task.substr(task.rfind('/') + 1) + ".py";
}

} // namespace

json baseline_times_json(const std::vector<sample>& samples) {
  std::map<uint32_t, std::map<uint32_t, json>> levels;
  std::map<uint32_t, std::map<uint32_t, std::string>> names;
  for (const auto& x : samples) {
    if (!is_problem(x) || x.id != 0) continue;
    auto at = place_of(x.task);
    json stats = {{"mean", mean_of(x)},
                  {"std", nullptr},
                  {"min", nullptr},
                  {"max", nullptr},
                  {"num_trials", x.reference ? json(x.reference->calls) : json(0)},
                  {"hardware", x.hardware},
                  {"device", x.backend}};
    names[*at.level][*at.problem] = file_name(x.task);
    levels[*at.level][*at.problem] = std::move(stats);
  }
  auto result = json::object();
  for (auto& [level, problems] : levels) {
    auto& to = result["level" + std::to_string(level)];
    for (auto& [problem, stats] : problems) to[names[level][problem]] = std::move(stats);
  }
  return result;
}

expected<kernelbench_folder> write_kernelbench_folder(const std::vector<sample>& samples,
                                                      const std::string& directory) {
  auto files = write_eval_results(samples, directory + "/level{level}/eval_results.json");
  KM_TRY(files);
  kernelbench_folder result;
  result.files = std::move(files->files);
  result.passed_over = files->passed_over;
  for (const auto& x : samples)
    if (is_problem(x) && x.id == 0 && x.correct && !x.speedup) result.untimed.push_back(x.task);
  result.baseline = directory + "/baseline_time_kernelmill.json";
  KM_TRY(write_json(result.baseline, baseline_times_json(samples)));
  return result;
}

} // namespace kernelmill::reporting
