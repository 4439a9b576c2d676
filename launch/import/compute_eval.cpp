#include "launch/import/compute_eval.hpp"

#include <algorithm>
#include <set>

#include "launch/import/compute_eval_files.hpp"
#include "launch/import/import_words.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

bool is_chosen(const compute_eval_source& x, const suite_options& options) {
  auto fits = [&](const char* option, const std::string& has) {
    auto one = option_of(options, option);
    return one.empty() || one == has;
  };
  auto metadata = x.record.value("metadata", json::object());
  auto problem = option_of(options, "--problem");
  return fits("--release", x.release) && fits("--group", text_in(x.record, "group")) &&
         fits("--difficulty", metadata.is_object() ? text_in(metadata, "difficulty") : "") &&
         (problem.empty() ||
          compute_eval_id({}, problem) == compute_eval_id({}, text_in(x.record, "task_id")));
}

} // namespace

std::string compute_eval_id(const std::string& release, const std::string& task_id) {
  auto name = task_id;
  std::replace(name.begin(), name.end(), '/', '_');
  return "compute-eval/" + release + "/" + name;
}

bool is_problem_id(const std::string& x) {
  auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '/';
  };
  return !x.empty() && x.size() <= 80 && std::all_of(x.begin(), x.end(), fits) &&
         x.front() != '/' && x.back() != '/' && x.front() != '-';
}

expected<suite_reading> read_compute_eval_suite(const std::string& path,
                                                const suite_options& options) {
  auto release = option_of(options, "--release");
  auto sources = find_compute_eval(path, release.empty() ? "internal" : release);
  KM_TRY(sources);
  suite_reading result;
  std::set<std::string> seen;
  for (auto& x : *sources) {
    auto task_id = text_in(x.record, "task_id");
    if (!is_problem_id(task_id) || !is_problem_id(x.release) ||
        x.release.find('/') != x.release.npos)
      return bad_compute_eval(x.place,
                              "its task_id or release is missing, or no folder may have it");
    auto id = compute_eval_id(x.release, task_id);
    if (!seen.insert(id).second) return bad_compute_eval(x.place, "it is the second problem " + id);
    if (!is_chosen(x, options)) continue;
    auto one = make_compute_eval_task(x, id);
    if (one)
      result.tasks.push_back(std::move(*one));
    else
      result.refused.push_back({x.place + " (" + task_id + ")", std::move(one.error().reason),
                                std::move(one.error().cause)});
    x.record = nullptr; // several releases are many megabytes
  }
  std::sort(result.tasks.begin(), result.tasks.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return result;
}

expected<json> compute_eval_record(const std::string& folder) {
  auto text = read_in_folder(folder, compute_eval_suite_file);
  KM_TRY(text);
  auto origin = json::parse(*text, nullptr, false);
  auto place = folder + "/" + compute_eval_suite_file;
  if (!origin.is_object() || !origin.contains("problem") || !origin["problem"].is_object())
    return bad_compute_eval(place, "it is no record of a problem");
  json result = std::move(origin["problem"]);
  auto prompt = read_in_folder(folder, "prompt.md");
  KM_TRY(prompt);
  result["prompt"] = std::move(*prompt);
  auto fill = [&](json& list, const std::string& part) -> expected<void> {
    if (list.is_null()) return {};
    if (!list.is_array()) return bad_compute_eval(place, part + " is no list of paths");
    for (auto& x : list) {
      if (!x.is_string()) return bad_compute_eval(place, part + " is no list of paths");
      auto path = x.get<std::string>();
      auto content = read_in_folder(folder, part + "/" + path);
      KM_TRY(content);
      x = {{"path", path}, {"content", std::move(*content)}};
    }
    return {};
  };
  for (auto [key, part] : {std::pair{"context_files", "context"}, std::pair{"test_files", "tests"}})
    if (result.contains(key)) KM_TRY(fill(result[key], part));
  if (auto i = result.find("baseline_solution"); i != result.end() && i->is_object())
    KM_TRY(fill((*i)["files"], "baseline"));
  return result;
}

} // namespace kernelmill
