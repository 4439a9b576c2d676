#include <filesystem>

#include "launch/commands/remote/remote_plan.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/sources.hpp"
#include "launch/config/json_text.hpp"
#include "launch/config/keys.hpp"
#include "launch/config/paths.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

namespace fs = std::filesystem;

// In the working folder: paths of a configuration are relative to its file.
constexpr const char* far_config = ".config.json";

bool was_set(const resolved_config& x, const std::string& key) {
  auto at = x.origins.find(key);
  return at != x.origins.end() && at->second != "default";
}

tl::unexpected<error> not_there(const std::string& key, const std::string& why,
                                const std::string& hint) {
  return configuration_error("usage", "failed to use --on with " + key + ": " + why, hint);
}

/// The files that a script names, each a path relative to the script.
void collect_files(const nlohmann::json& x, std::vector<std::string>& into) {
  for (const auto& [key, value] : x.items()) {
    if (key == "kernel" && value.is_string()) into.push_back(value.get<std::string>());
    if (key == "files" && value.is_object())
      for (const auto& file : value)
        if (file.is_string()) into.push_back(file.get<std::string>());
    if (value.is_structured()) collect_files(value, into);
  }
}

// Only what it names is sent, and only from its own folder: others of it may be private.
expected<std::string> send_script(remote_plan& to, const std::string& path) {
  auto script = read_json_file(path);
  KM_TRY(script);
  std::vector<std::string> names;
  collect_files(script->value, names);
  const std::string folder = ".sent/policy";
  auto far = folder + "/" + fs::path{path}.filename().string();
  to.inputs.push_back({far, path});
  for (const auto& name : names) {
    auto below = fs::path{name}.lexically_normal().string();
    if (!remote::safe_path(below))
      return not_there("policy.script", "the script names " + name + ", outside its folder",
                       "copy that file beside the script");
    auto target = folder + "/" + below;
    bool known = false;
    for (const auto& x : to.inputs) known = known || x.far == target;
    if (!known) to.inputs.push_back({target, (fs::path{path}.parent_path() / below).string()});
  }
  return far;
}

// What the configuration names and the run reads. Programs, caches and files with keys are those
// of the other machine, so their paths stay.
expected<void> send_what_it_names(remote_plan& to, resolved_config& x) {
  auto& config = x.config;
  if (!config.policy.script.empty()) {
    auto script = send_script(to, config.policy.script);
    KM_TRY(script);
    config.policy.script = *script;
  }
  if (!config.policy.ca_file.empty()) config.policy.ca_file = to.send_file(config.policy.ca_file);
  if (!config.retrieval.index.empty()) {
    if (config.retrieval.live)
      return not_there("retrieval.index", "with retrieval.live the run would write into a copy",
                       "leave retrieval.live out");
    config.retrieval.index = to.send_file(config.retrieval.index);
  }
  if (!config.retrieval.corpus.empty()) {
    KM_TRY(to.send_folder(config.retrieval.corpus, ".sent/corpus"));
    config.retrieval.corpus = ".sent/corpus";
  }
  if (!config.storage.store.empty())
    return not_there("storage.store", "the store of such a run lies in its directory",
                     "leave it out");
  auto chosen = tasks_of(config.tasks);
  KM_TRY(chosen);
  // The installation's own, by its path here: that path would not lead back when the run is
  // resumed.
  std::error_code code;
  if (fs::equivalent(config.tasks.root, default_tasks_root(), code)) config.tasks.root.clear();
  auto root = send_tasks(to, config.tasks.root, *chosen);
  KM_TRY(root);
  if (!root->empty()) config.tasks.root = *root;
  return {};
}

void put(nlohmann::ordered_json& into, const std::string& name, const nlohmann::json& value) {
  auto dot = name.find('.');
  if (dot == std::string::npos)
    into[name] = value;
  else
    put(into[name.substr(0, dot)], name.substr(dot + 1), value);
}

std::string config_text(const resolved_config& x) {
  auto document = nlohmann::ordered_json::object();
  for (const auto& key : config_keys())
    if (was_set(x, key.name) || key.name == "run.name" || key.name == "run.dir")
      put(document, key.name, key.get(x.config));
  return document.dump(2) + "\n";
}

/// Variables that the run would read here, and does not get there.
void note_variables(const config_sources& sources, remote_plan& to) {
  std::string names;
  for (const auto& [name, value] : sources.environment)
    if (name.find("__") != std::string::npos) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty())
    to.notes.push_back("not sent: " + names + "; give settings as KEY=VALUE or in a file");
}

} // namespace

std::string secret_in(const resolved_config& config) {
  for (const auto& key : config_keys()) {
    if (!key.sensitive || key.kind != value_kind::text) continue;
    auto value = key.get(config.config).get<std::string>();
    bool address = value.starts_with("http://") || value.starts_with("https://");
    if (address && (key.name == "hooks.url" || value.find_first_of("?@") != std::string::npos))
      return key.name;
  }
  return {};
}

expected<remote_plan> plan_run(const invocation& in, const cli::command& row) {
  remote_plan result;
  for (const char* name : {"--monitor", "--token-file", "--tls-certificate", "--tls-key"})
    if (in.was_typed(name))
      return not_there(name, "a page of another machine is not reached from here",
                       "leave it out; progress is shown as always");
  auto sources = sources_of(in.list("CONFIG"));
  note_variables(sources, result);
  sources.environment.clear();
  if (in.has("--split")) sources.overrides.push_back("tasks.split=" + in.value("--split"));
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  if (auto key = secret_in(*loaded); !key.empty())
    return configuration_error("remote_secret",
                               "failed to send the configuration: " + key + " may hold a secret",
                               "leave it out here and set it in ~/.config/kernelmill/config.json "
                               "of " +
                                   in.value("--on"));
  name_run(loaded->config, sources);
  std::error_code code;
  if (const auto& directory = loaded->config.run.dir;
      fs::exists(directory, code) && !fs::is_empty(directory, code))
    return configuration_error("run_exists", "failed to run: " + directory + " exists",
                               "name another run: run.dir=runs/NAME");
  KM_TRY(send_what_it_names(result, *loaded));
  auto here = fs::path{loaded->config.run.dir}.lexically_relative(fs::current_path(code)).string();
  loaded->config.run.dir =
      result.fetch(here.empty() || here.starts_with("..") ? loaded->config.run.dir : here);
  result.inputs.push_back({far_config, {}, config_text(*loaded)});
  std::map<std::string, std::string> paths;
  if (in.was_typed("--bundle")) {
    KM_TRY(check_new_folder(in.value("--bundle")));
    paths["--bundle"] = result.fetch(in.value("--bundle"));
  }
  result.order.words = {row.name, far_config};
  auto options = words_of(in, row, paths, {"--split"});
  result.order.words.insert(result.order.words.end(), options.begin(), options.end());
  return result;
}

} // namespace kernelmill::commands
