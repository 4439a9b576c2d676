#include "launch/import/model.hpp"

#include <filesystem>

#include "launch/import/import_words.hpp"
#include "launch/import/our_python.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

using model_json = nlohmann::json;

constexpr size_t usual_share = 10; // percent

std::string absolute_path(const std::string& path) {
  std::error_code code;
  return std::filesystem::absolute(path, code).lexically_normal().string();
}

error missing(const std::string& path) {
  return {fault_class::configuration, "missing_file",
          "failed to read " + path + ": it is not a readable file", "name a file of Python"};
}

bool is_file(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_regular_file(path, code);
}

const model_json& list_in(const model_json& from, const char* name) {
  static const model_json none = model_json::array();
  auto found = from.find(name);
  return found != from.end() && found->is_array() ? *found : none;
}

} // namespace

expected<suite_reading> read_model(const std::string& path, const suite_options& options) {
  if (!is_file(path)) return tl::unexpected<error>{missing(path)};
  auto share = count_of(options, "--share", 1, 100, usual_share);
  KM_TRY(share);
  auto entry = option_of(options, "--entry");
  auto document =
      run_our_python(option_of(options, "--python"), "model_tasks.py",
                     {absolute_path(path), output_argument, entry.empty() ? "model" : entry,
                      std::to_string(static_cast<double>(*share) / 100)});
  KM_TRY(document);
  suite_reading result;
  for (const auto& x : list_in(*document, "tasks")) {
    suite_task one{text_in(x, "id"), {}, text_in(x, "note")};
    auto files = x.find("files");
    if (files == x.end() || !files->is_object()) continue;
    for (const auto& [name, text] : files->items())
      if (text.is_string()) one.files.push_back({name, text.get<std::string>()});
    result.tasks.push_back(std::move(one));
  }
  for (const auto& x : list_in(*document, "refused"))
    result.refused.push_back({text_in(x, "place"), text_in(x, "reason"), text_in(x, "cause")});
  return result;
}

expected<patched_model> patch_model(const std::string& kernel, const std::string& problem,
                                    const std::string& model, const std::string& python) {
  for (const auto& path : {kernel, problem, model})
    if (!is_file(path)) return tl::unexpected<error>{missing(path)};
  auto document = run_our_python(
      python, "model_patch.py",
      {absolute_path(kernel), absolute_path(problem), absolute_path(model), output_argument});
  KM_TRY(document);
  return patched_model{text_in(*document, "text"), text_in(*document, "whole")};
}

} // namespace kernelmill
