#include "launch/config/load.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include <unistd.h>

#include "launch/config/keys.hpp"
#include "launch/config/layers.hpp"
#include "launch/config/paths.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"

namespace kernelmill {

namespace {

std::string absolute_path(const std::string& path, const std::string& directory) {
  if (path.empty()) return path;
  auto base = directory.empty() ? std::filesystem::path{"."} : std::filesystem::path{directory};
  std::error_code code;
  return std::filesystem::absolute(base / path, code).lexically_normal().string();
}

std::string hint_for(const config_key& key, const nlohmann::json& value) {
  if (key.kind == value_kind::text_list && value.is_string() &&
      value.get<std::string>().starts_with('[') && !value.get<std::string>().ends_with(']'))
    return "close the list, and quote each text: '" + key.name + "=[\"one\",\"other\"]'";
  if (key.kind == value_kind::text_list && value.is_string() && !key.sensitive)
    return "write a list, on a command line in quotes: '" + key.name + "=" +
           as_list(value.get<std::string>())
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
           "'";
  if (key.name == "run.name")
    return "use letters, digits, '.', '_' and '-', and begin with a letter, a digit or '_'";
  return "`kernelmill config schema` lists what each key takes";
}

void apply(const raw_layers& layers, config_report& report) {
  for (const auto& key : config_keys()) {
    auto at = layers.values.find(key.name);
    if (at == layers.values.end()) {
      report.resolved.origins[key.name] = "default";
      continue;
    }
    auto value = at->second.value;
    if (auto problem = check_value(key, value); !problem.empty()) {
      report.problems.push_back(
          {fault_class::configuration, "config_invalid_value",
           "failed to read " + at->second.origin + ": '" + key.name + "': " + problem,
           hint_for(key, value)});
      continue;
    }
    if (key.path != path_kind::none)
      value = absolute_path(value.get<std::string>(), at->second.directory);
    key.set(report.resolved.config, value);
    report.resolved.origins[key.name] = at->second.origin;
  }
}

error inconsistent(std::string message, std::string hint) {
  return {fault_class::configuration, "config_inconsistent", std::move(message), std::move(hint)};
}

void check_timeouts(const run_config& c, std::vector<error>& problems) {
  const auto& judged = c.evaluation;
  uint32_t sanitized = c.sanitized_ms();
  if (sanitized > 0 && uint64_t{judged.deadline_ms} + sanitized >= c.episode.turn_deadline_ms)
    problems.push_back(inconsistent("failed to nest the timeouts: evaluation.deadline_ms and "
                                    "evaluation.sanitize_ms together are not below "
                                    "episode.turn_deadline_ms (" +
                                        std::to_string(c.episode.turn_deadline_ms) + ")",
                                    "lower evaluation.sanitize_ms or raise "
                                    "episode.turn_deadline_ms"));
  const std::pair<const char*, uint32_t> tools[] = {
      {"policy.timeout_ms", c.policy.timeout_ms},
      {"compile.deadline_ms", c.compile.deadline_ms},
      {"evaluation.deadline_ms", c.evaluation.deadline_ms},
  };
  for (const auto& [name, ms] : tools)
    if (ms >= c.episode.turn_deadline_ms)
      problems.push_back(
          inconsistent("failed to nest the timeouts: " + std::string{name} + " (" +
                           std::to_string(ms) + ") is not below episode.turn_deadline_ms (" +
                           std::to_string(c.episode.turn_deadline_ms) + ")",
                       "lower " + std::string{name} + " or raise episode.turn_deadline_ms"));
  if (c.episode.turn_deadline_ms >= c.episode.deadline_ms)
    problems.push_back(inconsistent("failed to nest the timeouts: episode.turn_deadline_ms (" +
                                        std::to_string(c.episode.turn_deadline_ms) +
                                        ") is not below episode.deadline_ms (" +
                                        std::to_string(c.episode.deadline_ms) + ")",
                                    "raise episode.deadline_ms"));
}

void check_policy(const policy_section& policy, std::vector<error>& problems) {
  if (policy.kind == "scripted") {
    if (policy.script.empty())
      problems.push_back(inconsistent("failed to set up the policy: policy.script is not given",
                                      "name a script, e.g. "
                                      "policy.script=configs/policies/quickstart/script.json"));
    if (!policy.base_url.empty())
      problems.push_back(
          inconsistent("failed to set up the policy: policy.base_url is given, and policy.kind is "
                       "scripted, which asks no server",
                       "add policy.kind=openai and policy.model=MODEL, or leave policy.base_url "
                       "out"));
    return;
  }
  if (policy.kind == "attached") {
    if (policy.stream)
      problems.push_back(
          inconsistent("failed to set up the policy: attached servers are asked without streams",
                       "leave policy.stream out, or name one server with policy.kind and "
                       "policy.base_url"));
    return;
  }
  if (policy.base_url.empty())
    problems.push_back(inconsistent("failed to set up the policy: policy.base_url is not given",
                                    "give the server's address, e.g. "
                                    "policy.base_url=http://127.0.0.1:8000/v1"));
  if (policy.model.empty() && policy.kind != "llamacpp")
    problems.push_back(inconsistent("failed to set up the policy: policy.model is not given",
                                    "give the name by which the server knows its model"));
  if (!policy.api_key_env.empty() && !policy.api_key_file.empty())
    problems.push_back(inconsistent(
        "failed to set up the policy: policy.api_key_env and policy.api_key_file are both given",
        "keep one of them"));
}

void check_groups(const tasks_section& tasks, std::vector<error>& problems) {
  if (tasks.quorum > tasks.group_size)
    problems.push_back(
        inconsistent("failed to set up the groups: tasks.quorum (" + std::to_string(tasks.quorum) +
                         ") is above tasks.group_size (" + std::to_string(tasks.group_size) + ")",
                     "lower tasks.quorum, or raise tasks.group_size"));
}

void check_search(const run_config& c, std::vector<error>& problems) {
  if (!c.search.on()) return;
  if (c.tasks.ids.size() != 1 || c.tasks.ids.front().find_first_of("*?[") != std::string::npos)
    problems.push_back(inconsistent("failed to set up the search: it is for one task, and "
                                    "tasks.ids may name several",
                                    "give one id: 'tasks.ids=[\"native/row_sum\"]'"));
  if (c.tasks.quorum > 0)
    problems.push_back(inconsistent("failed to set up the search: a generation waits for all of "
                                    "its episodes, and tasks.quorum is given",
                                    "leave tasks.quorum at 0"));
  if (c.search.dollars > 0 && c.search.prompt_price <= 0 && c.search.completion_price <= 0)
    problems.push_back(inconsistent("failed to set up the search: search.dollars is given and no "
                                    "price of a token",
                                    "give search.prompt_price and search.completion_price, in "
                                    "dollars for a million tokens"));
}

error with_near_preset(error x, const std::string& path) {
  if (x.category != "config_not_found") return x;
  auto presets = preset_names();
  if (path.find('/') != std::string::npos) {
    // Help and documents name presets by the file that they are in the source.
    auto name = std::filesystem::path{path}.stem().string();
    if (std::find(presets.begin(), presets.end(), name) != presets.end())
      x.hint += ", or the preset '" + name + "', which needs no file";
    return x;
  }
  if (find_config_key(path)) {
    x.hint = "a setting has a value: " + path + "=VALUE";
    return x;
  }
  auto meant = closest(path, presets);
  x.hint = meant.empty() ? "give the path of a configuration file, or a preset"
                         : "did you mean '" + meant + "'?";
  x.hint += meant.empty() ? " of `kernelmill config list`" : " `kernelmill config list` has all";
  return x;
}

} // namespace

std::vector<error> check_consistency(const run_config& config) {
  std::vector<error> problems;
  check_timeouts(config, problems);
  check_groups(config.tasks, problems);
  check_policy(config.policy, problems);
  check_search(config, problems);
  const auto& embedder = config.retrieval.embedder;
  if (config.retrieval.enabled && embedder.kind == "http" && embedder.base_url.empty())
    problems.push_back(inconsistent(
        "failed to set up retrieval: retrieval.embedder.base_url is not given",
        "give the address of the embeddings server, or retrieval.embedder.kind=hashed"));
  if (embedder.dimension > 0 && embedder.dimension < 64)
    problems.push_back(inconsistent("failed to set up retrieval: retrieval.embedder.dimension is "
                                    "between 0 and 64",
                                    "leave it out, or give 64 or more"));
  if (config.tasks.ids.empty())
    problems.push_back(inconsistent("failed to choose tasks: tasks.ids is empty",
                                    "`kernelmill task list` shows the ids; \"*\" takes all"));
  return problems;
}

config_report examine_config(const config_sources& sources) {
  config_report report;
  raw_layers layers;
  auto files = sources.files;
  if (!sources.user_file.empty()) files.insert(files.begin(), sources.user_file);
  for (const auto& path : files) {
    auto file = read_json_file(path);
    if (file)
      add_file_layer(layers, *file);
    else
      layers.problems.push_back(with_near_preset(file.error(), path));
  }
  add_environment_layer(layers, sources);
  for (const auto& text : sources.overrides) add_override(layers, text, sources.directory);
  report.problems = std::move(layers.problems);
  try {
    apply(layers, report);
  } catch (const std::exception& e) { // nlohmann, were check_value ever to let a wrong type pass
    report.problems.push_back({fault_class::configuration, "config_invalid_value",
                               std::string{"failed to read the configuration: "} + e.what(),
                               "please report this as a defect"});
  }
  // A missing value makes inconsistencies that are only its echo.
  if (report.problems.empty()) report.problems = check_consistency(report.resolved.config);
  return report;
}

expected<resolved_config> load_config(const config_sources& sources) {
  auto report = examine_config(sources);
  if (report.problems.empty()) return std::move(report.resolved);
  auto first = std::move(report.problems.front());
  if (auto others = report.problems.size() - 1; others > 0)
    first.hint += (first.hint.empty() ? "" : "; ") + std::to_string(others) + " more problem" +
                  (others > 1 ? "s" : "") + ": `kernelmill config validate` lists all";
  return tl::unexpected<error>{std::move(first)};
}

std::vector<std::pair<std::string, std::string>> process_environment() {
  std::vector<std::pair<std::string, std::string>> result;
  for (char** at = environ; at && *at; ++at) {
    std::string_view entry{*at};
    auto equals = entry.find('=');
    if (entry.starts_with("KERNELMILL_") && equals != std::string_view::npos)
      result.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return result;
}

bool is_override(const std::string& argument) {
  auto begin = argument.find_first_not_of("+~");
  if (begin == std::string::npos || begin > 1) return false;
  if (argument[0] == '~') return true;
  auto equals = argument.find('=');
  if (equals == std::string::npos || equals <= begin) return false;
  auto end = argument[equals - 1] == '+' ? equals - 1 : equals; // a list grows by +=
  return end > begin &&
         argument.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.", begin) == end;
}

std::string config_digest(const run_config& config) {
  std::string text;
  for (const auto& key : config_keys())
    if (!key.may_change) text += key.name + "=" + key.get(config).dump() + "\n";
  return sha256_hex(text);
}

std::string locate_config(const std::string& argument) {
  std::error_code code;
  if (std::filesystem::exists(argument, code) || argument.find('/') != std::string::npos)
    return argument;
  auto home = data_directory();
  if (home.empty()) return argument;
  for (const auto& name : {argument, argument + ".json"}) {
    auto path = std::filesystem::path{home} / "configs" / name;
    if (std::filesystem::is_regular_file(path, code)) return path.string();
  }
  return argument;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> result;
  std::error_code code;
  const auto folder = std::filesystem::path{data_directory()} / "configs";
  for (const auto& x : std::filesystem::directory_iterator{folder, code})
    if (auto name = x.path().filename(); name.extension() == ".json" && x.is_regular_file(code) &&
                                         name.stem().extension() != ".schema")
      result.push_back(name.stem().string());
  std::sort(result.begin(), result.end());
  return result;
}

} // namespace kernelmill
