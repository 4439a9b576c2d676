#include "launch/import/python_solutions.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "launch/import/gpu_mode_text.hpp"
#include "launch/import/robust_kbench.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace python_solutions {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr uint64_t largest_answer = 4 << 20;
constexpr size_t most_files = 200'000;
constexpr int deepest_folder = 6;

tl::unexpected<error> bad(const std::string& place, const std::string& cause,
                          const std::string& hint) {
  return configuration_error("bad_batch", "failed to read " + place + ": " + cause, hint);
}

expected<std::set<std::string>> imported(const solution_place& where) {
  auto tasks = list_tasks(where.roots);
  KM_TRY(tasks);
  return std::set<std::string>{tasks->begin(), tasks->end()};
}

// Paths of regular files below a folder, relative to it, sorted; links are left out.
std::vector<std::string> files_below(const fs::path& root) {
  std::vector<std::string> result;
  std::error_code code;
  for (auto at = fs::recursive_directory_iterator{root, code};
       !code && at != fs::recursive_directory_iterator{} && result.size() < most_files;
       at.increment(code)) {
    std::error_code ignored;
    if (at.depth() >= deepest_folder) at.disable_recursion_pending();
    if (!at->is_symlink(ignored) && at->is_regular_file(ignored))
      result.push_back(fs::relative(at->path(), root, ignored).generic_string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

expected<fs::path> folder_at(const std::string& path, const char* inner, const std::string& hint) {
  std::error_code code;
  fs::path root{path};
  if (!fs::is_directory(root, code))
    return configuration_error("missing_file", "failed to read " + path + ": it is no folder",
                               hint);
  if (fs::is_directory(root / inner, code)) root /= inner;
  return root;
}

expected<std::string> text_of(const fs::path& root, const std::string& name) {
  auto text = read_in_folder(root.string(), name, largest_answer);
  KM_TRY(text);
  if (!is_utf8(*text)) return bad((root / name).string(), "it is no UTF-8", "save it as UTF-8");
  return text;
}

/// Which task a file of the folder answers; empty: none.
using task_of = std::string (*)(const std::string& file);

// Every file that answers an imported task.
expected<std::vector<suite_candidate>> answers_below(const fs::path& root,
                                                     const solution_place& where, task_of of,
                                                     const std::string& suite,
                                                     const std::string& hint) {
  auto tasks = imported(where);
  KM_TRY(tasks);
  std::vector<suite_candidate> result;
  for (const auto& file : files_below(root)) {
    auto task = of(file);
    if (task.empty() || !tasks->contains(suite + "/" + task)) continue;
    auto text = text_of(root, file);
    KM_TRY(text);
    suite_candidate one;
    one.task = suite + "/" + task;
    one.name = file;
    one.source = std::move(*text);
    result.push_back(std::move(one));
  }
  if (result.empty()) return bad(root.string(), "no file answers an imported task", hint);
  return result;
}

std::string robust_task_of(const std::string& file) {
  static const std::regex form{R"((.+)/(forward|backward)(?:\.cu|/kernel\.cu))"};
  std::smatch found;
  if (!std::regex_match(file, found, form)) return {};
  return found[1].str() + (found[2] == "backward" ? "_backward" : "");
}

std::string gpu_mode_task_of(const std::string& file) {
  static const std::regex form{R"((.+)/(?:submission\.py|solutions/[^/]+/[^/]+\.py))"};
  std::smatch found;
  return std::regex_match(file, found, form) ? found[1].str() : std::string{};
}

// -- KernelBench ----------------------------------------------------------------------------------

struct generation {
  uint32_t level = 0, problem = 0, sample = 0;
};

bool read_name(const std::string& file, generation& into) {
  static const std::regex form{R"(level_(\d{1,2})_problem_(\d{1,6})_sample_(\d{1,6})_kernel\.py)"};
  std::smatch found;
  if (!std::regex_match(file, found, form)) return false;
  into = {static_cast<uint32_t>(std::stoul(found[1])), static_cast<uint32_t>(std::stoul(found[2])),
          static_cast<uint32_t>(std::stoul(found[3]))};
  return true;
}

// "kernelbench/level1/19_ReLU" by "1/19".
std::map<std::string, std::string> problems_of(const std::set<std::string>& tasks) {
  static const std::regex form{R"(kernelbench/level(\d+)/(\d+)_.*)"};
  std::map<std::string, std::string> result;
  std::smatch found;
  for (const auto& x : tasks)
    if (std::regex_match(x, found, form)) result[found[1].str() + "/" + found[2].str()] = x;
  return result;
}

json times(const json& timing, const char* key) {
  auto value = timing.find(key);
  bool known = flag_in(timing, "measured", false) && value != timing.end() && value->is_number();
  return known ? *value : json(-1.0);
}

json metadata_of(const json& verdict, bool compiled, bool correct) {
  json result = {{"hardware", text_in(verdict, "device")}, {"device", text_in(verdict, "backend")}};
  auto timing = verdict.value("timing", json::object());
  if (auto speedup = timing.find("speedup"); speedup != timing.end())
    result["kernelmill"] = {{"speedup", *speedup}};
  if (correct) return result;
  auto fault = verdict.value("error", json::object());
  auto category = text_in(fault, "category");
  bool wrong =
      category == "integrity" || category.starts_with("wrong_") || category == "not_deterministic";
  const std::string key = !compiled ? "compilation_error"
                          : wrong   ? "correctness_issue"
                                    : "runtime_error";
  result[key] = text_in(fault, "message");
  result[key + "_name"] = category;
  return result;
}

json entry_of(const graded_candidate& x, uint32_t sample) {
  const json none = json::object();
  const auto& verdict = x.verdict == nullptr ? none : *x.verdict;
  bool compiled = flag_in(verdict, "compiled", false);
  bool correct = compiled && flag_in(verdict, "correct", false) &&
                 flag_in(verdict.value("integrity", json::object()), "clean", false);
  auto timing = verdict.value("timing", json::object());
  return {{"sample_id", sample},
          {"compiled", compiled},
          {"correctness", correct},
          {"metadata", metadata_of(verdict, compiled, correct)},
          {"runtime", correct ? times(timing, "candidate_ms") : json(-1.0)},
          {"runtime_stats", json::object()},
          {"ref_runtime", times(timing, "reference_ms")},
          {"ref_runtime_stats", json::object()}};
}

} // namespace

} // namespace python_solutions

expected<std::vector<suite_candidate>> read_kernelbench_generations(const std::string& path,
                                                                    const solution_place& where) {
  using namespace python_solutions;
  const std::string hint = "it holds level_1_problem_2_sample_0_kernel.py and others of one level";
  auto root = folder_at(path, "", hint);
  KM_TRY(root);
  auto tasks = imported(where);
  KM_TRY(tasks);
  auto problems = problems_of(*tasks);
  std::vector<suite_candidate> result;
  uint32_t level = 0;
  for (const auto& file : files_below(*root)) {
    generation one;
    if (!read_name(file, one)) continue;
    if (level != 0 && level != one.level)
      return bad(path, "it has answers of several levels", "give each level a folder: " + hint);
    level = one.level;
    auto task = problems.find(std::to_string(one.level) + "/" + std::to_string(one.problem));
    if (task == problems.end())
      return bad((*root / file).string(), "no imported task is its problem",
                 "`kernelmill task import kernelbench PATH` imports them");
    auto text = text_of(*root, file);
    KM_TRY(text);
    result.push_back({task->second, file, std::move(*text), "auto", {}, {}});
  }
  if (result.empty()) return bad(path, "it has no such file", hint);
  return result;
}

expected<std::string> kernelbench_results(const std::string&,
                                          std::span<const graded_candidate> graded) {
  using namespace python_solutions;
  std::map<uint32_t, std::map<uint32_t, json>> problems;
  for (const auto& x : graded) {
    generation one;
    if (read_name(x.what->name, one)) problems[one.problem][one.sample] = entry_of(x, one.sample);
  }
  auto result = json::object();
  for (auto& [problem, samples] : problems)
    for (auto& [sample, entry] : samples)
      result[std::to_string(problem)].push_back(std::move(entry));
  return result.dump(4, ' ', false, json::error_handler_t::replace) + "\n";
}

expected<std::vector<suite_candidate>> read_robust_kbench_answers(const std::string& path,
                                                                  const solution_place& where) {
  using namespace python_solutions;
  const std::string hint = "it holds TASK/forward.cu or TASK/forward/kernel.cu of imported tasks";
  auto root = folder_at(path, "tasks", hint);
  KM_TRY(root);
  auto result = answers_below(*root, where, robust_task_of, "robust-kbench", hint);
  KM_TRY(result);
  for (auto& x : *result) {
    auto task = load_task(where.roots, x.task);
    KM_TRY(task);
    x.source = robust_kbench_answer((*task)->torch.code, x.source);
  }
  return result;
}

expected<std::vector<suite_candidate>> read_gpu_mode_submissions(const std::string& path,
                                                                 const solution_place& where) {
  using namespace python_solutions;
  const std::string hint = "it holds SET/PROBLEM/submission.py of imported tasks";
  auto root = folder_at(path, "problems", hint);
  KM_TRY(root);
  auto result = answers_below(*root, where, gpu_mode_task_of, "gpu-mode", hint);
  KM_TRY(result);
  for (auto& x : *result) x.source = gpu_mode::without_task_types(x.source);
  return result;
}

expected<std::string> no_suite_results(const std::string&, std::span<const graded_candidate>) {
  return configuration_error("usage", "failed to write results: the suite keeps no file of them",
                             "leave --graded out; verdicts are printed");
}

} // namespace kernelmill
