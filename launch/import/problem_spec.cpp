#include "launch/import/problem_spec.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "launch/import/yaml.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr uint64_t largest_spec = uint64_t{1} << 20;
constexpr size_t most_spec_files = 256;

tl::unexpected<error> bad_spec(const std::string& place, const std::string& cause) {
  return configuration_error("bad_problem", "failed to read " + place + ": " + cause,
                             "a problem is a problem-spec.yaml beside context/, test/, solution/");
}

// The plain files below `folder`/`part` as the list of a problems.jsonl.
expected<json> files_below(const std::string& folder, const char* part) {
  auto result = json::array();
  auto base = fs::path{folder} / part;
  std::error_code code;
  if (!fs::is_directory(base, code)) return result;
  std::vector<std::string> names;
  fs::recursive_directory_iterator entries{base, code};
  for (auto end = fs::recursive_directory_iterator{}; !code && entries != end;
       entries.increment(code)) {
    std::error_code ignored;
    if (entries->is_directory(ignored) && !entries->is_symlink(ignored)) continue;
    names.push_back(entries->path().lexically_relative(base).generic_string());
    if (names.size() > most_spec_files)
      return bad_spec(base.string(), "it holds more than 256 files");
  }
  if (code) return bad_spec(base.string(), code.message());
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    auto text = read_in_folder(folder, std::string{part} + "/" + name, largest_spec);
    KM_TRY(text);
    if (!is_utf8(*text)) return bad_spec((base / name).string(), "it is not UTF-8");
    result.push_back({{"path", name}, {"content", std::move(*text)}});
  }
  return result;
}

} // namespace

expected<json> read_problem_spec(const std::string& folder) {
  auto text = read_in_folder(folder, "problem-spec.yaml", largest_spec);
  KM_TRY(text);
  auto place = folder + "/problem-spec.yaml";
  auto spec = json_of_yaml(*text, place);
  KM_TRY(spec);
  if (!spec->is_object()) return bad_spec(place, "it is no mapping of keys");
  json result = json::object();
  if (auto type = spec->find("problem_type"); type != spec->end()) result["type"] = *type;
  for (const auto& [key, value] : spec->items())
    if (key != "problem_type") result[key] = value;
  for (auto [part, key] :
       {std::pair{"context", "context_files"}, std::pair{"test", "test_files"}}) {
    auto files = files_below(folder, part);
    KM_TRY(files);
    if (!files->empty() && result.contains(key))
      return bad_spec(place, std::string{key} + " is given, and there is a folder " + part);
    if (!files->empty()) result[key] = std::move(*files);
  }
  auto solution = files_below(folder, "solution");
  KM_TRY(solution);
  if (!solution->empty() && !result.contains("baseline_solution"))
    result["baseline_solution"] = {{"schema_version", 1},
                                   {"type", "file"},
                                   {"task_id", result.value("task_id", json{})},
                                   {"files", std::move(*solution)}};
  return result;
}

} // namespace kernelmill
