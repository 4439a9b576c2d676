#include "launch/import/compute_eval_files.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "messages/base/json_fields.hpp"
#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"
#include "storage/bundle/tar.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t largest_suite_file = size_t{1} << 20;
constexpr size_t most_suite_files = 48;
constexpr size_t longest_command = 4096;
constexpr double longest_timeout_s = 3600;
constexpr double usual_timeout_s = 60; // of the suite's harness, where a problem has none
constexpr size_t longest_title = 100;

template <class T>
using taken = tl::expected<T, suite_refusal>;

tl::unexpected<suite_refusal> refuse(std::string reason, std::string cause) {
  return tl::unexpected<suite_refusal>{{{}, std::move(reason), std::move(cause)}};
}

const std::set<std::string>& known_keys() {
  static const std::set<std::string> keys{"type",
                                          "schema_version",
                                          "task_id",
                                          "date",
                                          "prompt",
                                          "metadata",
                                          "group",
                                          "context_files",
                                          "test_files",
                                          "build_command",
                                          "source_references",
                                          "test_command",
                                          "timing_mode",
                                          "benchmark_command",
                                          "min_cuda_toolkit",
                                          "timeout_seconds",
                                          "compute_capability",
                                          "requires_datacenter_gpu",
                                          "baseline_solution"};
  return keys;
}

/// The value of a key, or null.
const json& at(const json& x, const char* key) {
  static const json nothing;
  auto i = x.find(key);
  return i == x.end() ? nothing : *i;
}

taken<std::string> command_of(const json& record, const char* key, bool needed) {
  const auto& value = at(record, key);
  if (value.is_null() && !needed) return std::string{};
  if (value.is_null()) return refuse("a key is missing", key);
  if (!value.is_string())
    return refuse("a key has the wrong type", std::string{key} + " is no text");
  auto text = value.get<std::string>();
  if (text.size() > longest_command || text.find('\0') != text.npos)
    return refuse("a command is too long", key);
  if (needed && trimmed(text).empty())
    return refuse("a key is missing", std::string{key} + " is empty");
  return text;
}

// "12.8" of a version; a number of YAML, such as 12.8, is one, too.
taken<std::string> version_of(const json& record, const char* key, const char* usual) {
  if (!record.contains(key)) return std::string{usual};
  const auto& value = record.at(key);
  if (value.is_null()) return std::string{};
  auto text = value.is_string() ? value.get<std::string>() : value.dump();
  bool fits = !text.empty() && text.size() <= 12 && text.front() != '.' && text.back() != '.' &&
              text.find_first_not_of("0123456789.") == text.npos && text.find("..") == text.npos;
  if (!fits) return refuse("a key has the wrong type", std::string{key} + " is no version");
  return text;
}

taken<std::vector<std::string>> words_of(const json& value, const std::string& key) {
  std::vector<std::string> result;
  if (!value.is_array()) return refuse("a key has the wrong type", key + " is no list");
  for (const auto& x : value) {
    if (!x.is_string() || x.get_ref<const std::string&>().empty() || result.size() >= 256)
      return refuse("a key has the wrong type", key + " is no list of texts");
    result.push_back(x.get<std::string>());
  }
  return result;
}

// -- files
// ------------------------------------------------------------------------------------------

struct listed_file {
  std::string path, content;
};

taken<std::vector<listed_file>> files_of(const json& list, const std::string& key) {
  std::vector<listed_file> result;
  if (list.is_null()) return result;
  if (!list.is_array()) return refuse("a key has the wrong type", key + " is no list");
  if (list.size() > most_suite_files) return refuse("it is too large", key + " has over 48 files");
  std::set<std::string> seen;
  for (const auto& x : list) {
    if (!x.is_object() || !at(x, "path").is_string() || !at(x, "content").is_string())
      return refuse("a key has the wrong type", key + " holds more than texts path and content");
    listed_file file{x["path"].get<std::string>(), x["content"].get<std::string>()};
    if (auto why = bundles::wrong_path(file.path); !why.empty())
      return refuse("a path is not allowed", key + ": " + std::string{why});
    // list_tasks() would take a folder with such a file for a task.
    if (("/" + file.path).ends_with("/task.json"))
      return refuse("a path is not allowed", key + ": task.json is Kernelmill's own");
    if (file.content.size() > largest_suite_file)
      return refuse("it is too large", key + ": " + file.path + " has over 1 MiB");
    if (!seen.insert(file.path).second) return refuse("a path comes twice", key + ": " + file.path);
    result.push_back(std::move(file));
  }
  for (const auto& path : seen)
    for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      if (seen.contains(path.substr(0, slash)))
        return refuse("a path comes twice",
                      key + ": " + path.substr(0, slash) + " is a folder, too");
  return result;
}

struct problem_files {
  std::vector<listed_file> context, tests, baseline;
};

taken<problem_files> all_files(const json& record) {
  problem_files result;
  for (auto [key, into] :
       {std::pair{"context_files", &result.context}, std::pair{"test_files", &result.tests}}) {
    auto files = files_of(at(record, key), key);
    KM_TRY(files);
    *into = std::move(*files);
  }
  const auto& baseline = at(record, "baseline_solution");
  if (baseline.is_null()) return refuse("it has no solution of its own", "baseline_solution");
  if (!baseline.is_object())
    return refuse("a key has the wrong type", "baseline_solution is no object");
  if (text_in(baseline, "type") != "file")
    return refuse("its own solution is no list of files", "baseline_solution.type");
  auto files = files_of(at(baseline, "files"), "baseline_solution.files");
  KM_TRY(files);
  result.baseline = std::move(*files);
  if (result.baseline.empty())
    return refuse("it has no solution of its own", "baseline_solution.files");
  std::set<std::string> tests;
  for (const auto& x : result.tests) tests.insert(x.path);
  for (const auto* list : {&result.context, &result.baseline})
    for (const auto& x : *list)
      if (tests.contains(x.path)) return refuse("a path comes twice", x.path + " is a test, too");
  return result;
}

// -- task.json
// --------------------------------------------------------------------------------------

taken<json> timing_of(const json& record) {
  const auto& mode = at(record, "timing_mode");
  if (mode.is_null()) return json{{"mode", "process"}};
  if (!mode.is_object()) return refuse("a key has the wrong type", "timing_mode is no object");
  auto type = text_in(mode, "type");
  constexpr std::array modes{"process", "kernels", "region", "gpu", "custom"};
  if (std::find(modes.begin(), modes.end(), type) == modes.end())
    return refuse("its timing mode is not known", "timing_mode.type is \"" + type + "\"");
  json result{{"mode", type}};
  for (const std::string key : {"include", "exclude"}) {
    const auto& list = at(mode, key.c_str());
    if (list.is_null()) continue;
    auto words = words_of(list, "timing_mode." + key);
    KM_TRY(words);
    result[key] = *words;
  }
  if (const auto& clock = at(mode, "time_type"); !clock.is_null()) {
    if (clock != "kernel" && clock != "wall_clock")
      return refuse("its timing mode is not known", "timing_mode.time_type");
    if (type == "region") result["clock"] = clock == "kernel" ? "kernel" : "wall";
  }
  return result;
}

taken<json> references_of(const json& record) {
  const auto& value = at(record, "source_references");
  json result = json::object();
  if (value.is_null()) return result;
  if (value.is_string()) return json{{"all", json::array({value})}};
  auto add = [&](const json& list, const std::string& key) -> taken<void> {
    if (list.is_null()) return {};
    auto words = words_of(list, "source_references." + key);
    KM_TRY(words);
    if (!words->empty()) result[key] = *words;
    return {};
  };
  if (!value.is_object()) {
    KM_TRY(add(value, "all"));
    return result;
  }
  for (const std::string key : {"any", "all"}) KM_TRY(add(at(value, key.c_str()), key));
  return result;
}

taken<json> needs_of(const json& record) {
  json result = json::object();
  for (auto [key, ours, usual] : {std::tuple{"min_cuda_toolkit", "toolkit", ""},
                                  std::tuple{"compute_capability", "compute_capability", "8.0"}}) {
    auto version = version_of(record, key, usual);
    KM_TRY(version);
    if (!version->empty()) result[ours] = *version;
  }
  const auto& datacenter = at(record, "requires_datacenter_gpu");
  if (!datacenter.is_null() && !datacenter.is_boolean())
    return refuse("a key has the wrong type", "requires_datacenter_gpu is no boolean");
  if (datacenter == true) result["datacenter_gpu"] = true;
  return result;
}

taken<double> timeout_of(const json& record) {
  const auto& value = at(record, "timeout_seconds");
  if (value.is_null()) return usual_timeout_s;
  if (!value.is_number()) return refuse("a key has the wrong type", "timeout_seconds is no number");
  auto seconds = value.get<double>();
  if (!std::isfinite(seconds) || seconds < 1 || seconds > longest_timeout_s)
    return refuse("its timeout is not allowed", "timeout_seconds is not from 1 to 3600");
  return seconds;
}

// The file of the suite's own solution that the build names: prompts ask for it by that name.
std::string answer_file_of(const problem_files& files, const std::string& build) {
  for (const auto& x : files.baseline)
    if (build.find(x.path) != build.npos) return x.path;
  return files.baseline.front().path;
}

taken<json> program_of(const json& record, const problem_files& files) {
  json result = {{"suite_id", text_in(record, "task_id")}, {"group", text_in(record, "group")}};
  for (auto [key, ours, needed] :
       {std::tuple{"build_command", "build", false}, std::tuple{"test_command", "test", true},
        std::tuple{"benchmark_command", "benchmark", false}}) {
    auto command = command_of(record, key, needed);
    KM_TRY(command);
    if (!command->empty()) result[ours] = *command;
  }
  auto timing = timing_of(record);
  KM_TRY(timing);
  if (result.contains("benchmark")) result["timing"] = *timing;
  auto timeout = timeout_of(record);
  KM_TRY(timeout);
  result["timeout_s"] = *timeout;
  for (auto [part, make] :
       {std::pair{"needs", &needs_of}, std::pair{"references", &references_of}}) {
    auto value = make(record);
    KM_TRY(value);
    if (!value->empty()) result[part] = *value;
  }
  result["answer_file"] = answer_file_of(files, text_in(result, "build"));
  return result;
}

// -- the problem
// ------------------------------------------------------------------------------------

taken<void> check_head(const json& record) {
  for (const auto& [key, unused] : record.items())
    if (!known_keys().contains(key))
      return refuse("it has a key that is not known", std::string{utf8_prefix(key, 60)});
  auto type = text_in(record, "type");
  if (type != "cuda_cpp" && type != "cuda_python")
    return refuse("its type is not known", "type is \"" + type + "\"");
  if (record.contains("schema_version") && record["schema_version"] != 2)
    return refuse("its schema version is not known", "schema_version");
  for (const char* key : {"date", "prompt", "group"})
    if (!at(record, key).is_string())
      return refuse(record.contains(key) ? "a key has the wrong type" : "a key is missing", key);
  if (trimmed(record["prompt"].get_ref<const std::string&>()).empty())
    return refuse("a key is missing", "prompt is empty");
  if (record["prompt"].get_ref<const std::string&>().size() > largest_suite_file)
    return refuse("it is too large", "prompt");
  auto group = text_in(record, "group");
  if (!is_problem_id(group) || group.find('/') != group.npos)
    return refuse("a key has the wrong type", "group");
  if (!at(record, "metadata").is_object())
    return refuse(record.contains("metadata") ? "a key has the wrong type" : "a key is missing",
                  "metadata");
  return {};
}

// The suite says "intermediate" and "moderate", too.
std::string difficulty_of(const json& record) {
  auto x = lowered(text_in(record["metadata"], "difficulty"));
  return x == "easy" || x == "hard" ? x : "medium";
}

std::string title_of_prompt(const std::string& task_id, const std::string& prompt) {
  std::string_view rest{prompt};
  std::string_view line;
  while (line.empty() && !rest.empty()) line = trimmed(next_line(rest));
  auto cut = utf8_prefix(line, longest_title);
  if (cut.size() < line.size()) cut = trimmed(cut.substr(0, cut.rfind(' ')));
  std::string result = task_id + ": ";
  for (char c : cut) result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return result;
}

// The record without texts that are files of the task: it names their paths instead.
json record_without_texts(json record) {
  auto paths = [](json& list) {
    auto result = json::array();
    for (const auto& x : list) result.push_back(x["path"]);
    list = std::move(result);
  };
  record.erase("prompt");
  for (const char* key : {"context_files", "test_files"})
    if (record.contains(key) && record[key].is_array()) paths(record[key]);
  paths(record["baseline_solution"]["files"]);
  return record;
}

std::string document_text(const json& x) {
  return x.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace

tl::expected<suite_task, suite_refusal> make_compute_eval_task(const compute_eval_source& from,
                                                               const std::string& id) {
  const auto& record = from.record;
  KM_TRY(check_head(record));
  auto files = all_files(record);
  KM_TRY(files);
  auto program = program_of(record, *files);
  KM_TRY(program);
  auto prompt = record["prompt"].get<std::string>();
  auto group = text_in(record, "group");
  std::replace(group.begin(), group.end(), '-', '_');
  bool needs_gpu = text_in(record, "type") == "cuda_python" ||
                   text_in(*program, "build").find("nvcc") != std::string::npos;
  json document = {{"schema_version", 1},
                   {"id", id},
                   {"title", title_of_prompt(text_in(record, "task_id"), prompt)},
                   {"verb", "synthesize"},
                   {"operator_family", group},
                   {"contract", "program"},
                   {"difficulty", difficulty_of(record)},
                   {"backends", json::array({needs_gpu ? "cuda" : "cpu"})},
                   {"source", "compute-eval"},
                   {"suite", "compute-eval"},
                   {"program", *program}};
  json origin = {{"suite", "compute-eval"},
                 {"release", from.release},
                 {"problem", record_without_texts(record)}};
  suite_task result{id,
                    {{"task.json", document_text(document)},
                     {"prompt.md", prompt},
                     {compute_eval_suite_file, document_text(origin)}}};
  for (auto [folder, list] :
       {std::pair{"context/", &files->context}, std::pair{"tests/", &files->tests},
        std::pair{"baseline/", &files->baseline}})
    for (auto& x : *list) result.files.push_back({folder + x.path, std::move(x.content)});
  return result;
}

} // namespace kernelmill
