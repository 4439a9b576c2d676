#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "launch/analysis/report/eval_results.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::reporting {

namespace {

using json = nlohmann::ordered_json;

json finite(double x) {
  return std::isfinite(x) ? json(x) : json(nullptr);
}

/// Medians are what we have, so the keys of other statistics hold null, not the median again.
json stats(const std::optional<run_time>& time, const sample& x) {
  if (!time) return json::object();
  return {{"mean", nullptr},
          {"std", nullptr},
          {"min", nullptr},
          {"max", nullptr},
          {"median", finite(time->ms)},
          {"num_trials", time->calls},
          {"hardware", x.hardware},
          {"device", x.backend}};
}

json own_metadata(const sample& x) {
  json result = {{"task", x.task}, {"turn", x.turn}, {"category", x.category}};
  if (!x.contract.empty()) result["contract"] = x.contract;
  if (x.speedup) {
    auto& speedup = result["speedup"] = {{"estimate", finite(x.speedup->estimate)}};
    if (x.speedup->low) speedup["low"] = finite(*x.speedup->low);
    if (x.speedup->high) speedup["high"] = finite(*x.speedup->high);
    result["overhead_ms"] = finite(x.overhead_ms);
  }
  if (x.turns_to_first_correct) result["turns_to_first_correct"] = *x.turns_to_first_correct;
  return result;
}

json metadata(const sample& x) {
  json result = {{"hardware", x.hardware}, {"device", x.backend}};
  if (x.cases > 0) result["correctness_trials"] = fmt::format("({} / {})", x.cases_passed, x.cases);
  if (!x.correct) {
    bool wrong = x.compiled && (x.category == "integrity" || x.category.starts_with("wrong_") ||
                                x.category == "not_deterministic");
    const std::string key = !x.compiled ? "compilation_error"
                            : wrong     ? "correctness_issue"
                                        : "runtime_error";
    result[key] = x.message;
    result[key + "_name"] = x.category;
  }
  result["kernelmill"] = own_metadata(x);
  return result;
}

json entry(const sample& x) {
  json result = {{"sample_id", x.id},
                 {"compiled", x.compiled},
                 {"correctness", x.correct},
                 {"metadata", metadata(x)},
                 {"runtime", x.candidate ? finite(x.candidate->ms) : json(-1.0)},
                 {"runtime_stats", stats(x.candidate, x)}};
  if (x.reference) {
    result["ref_runtime"] = finite(x.reference->ms);
    result["ref_runtime_stats"] = stats(x.reference, x);
  }
  return result;
}

std::string file_of(std::string pattern, uint32_t level) {
  const std::string word = "{level}";
  for (size_t at = 0; (at = pattern.find(word, at)) != std::string::npos;) {
    auto number = std::to_string(level);
    pattern.replace(at, word.size(), number);
    at += number.size();
  }
  return pattern;
}

} // namespace

json eval_results(const std::vector<sample>& samples, uint32_t level) {
  std::map<uint32_t, std::vector<const sample*>> problems;
  for (const auto& x : samples)
    if (auto at = place_of(x.task); at.level == level && at.problem)
      problems[*at.problem].push_back(&x);
  auto result = json::object();
  for (auto& [problem, list] : problems) {
    std::sort(list.begin(), list.end(), [](auto* x, auto* y) { return x->id < y->id; });
    auto& entries = result[std::to_string(problem)] = json::array();
    for (const auto* x : list) entries.push_back(entry(*x));
  }
  return result;
}

expected<written_files> write_eval_results(const std::vector<sample>& samples,
                                           const std::string& file) {
  written_files result;
  std::map<uint32_t, uint64_t> levels;
  for (const auto& x : samples) {
    auto at = place_of(x.task);
    if (at.level && at.problem)
      ++levels[*at.level];
    else
      ++result.passed_over;
  }
  if (levels.empty())
    return configuration_error(
        "not_found", "failed to write " + file + ": there is no sample of a problem of KernelBench",
        "its tasks have ids such as kernelbench/level1/19_ReLU; `kernelmill report RUN` and the "
        "other forms of `export` take any run");
  if (levels.size() > 1 && file.find("{level}") == std::string::npos) {
    std::string list;
    for (const auto& [level, count] : levels)
      list += (list.empty() ? "" : ", ") + fmt::to_string(level);
    return configuration_error("usage",
                               fmt::format("failed to write {}: there are samples of levels {}, "
                                           "and a problem's number says nothing of its level",
                                           file, list),
                               "put {level} into the name: --eval-results "
                               "eval_results_level{level}.json");
  }
  for (const auto& [level, count] : levels) {
    auto path = file_of(file, level);
    auto folder = std::filesystem::path{path}.parent_path().string();
    if (!folder.empty()) KM_TRY(make_directories(folder));
    KM_TRY(write_json(path, eval_results(samples, level)));
    result.files.push_back({level, path, count});
  }
  return result;
}

} // namespace kernelmill::reporting
