#include <filesystem>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/sources.hpp"
#include "launch/config/keys.hpp"
#include "launch/config/schema.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

std::string origins_table(const resolved_config& x, bool all) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& key : config_keys()) {
    const auto& origin = x.origins.at(key.name);
    if (all || origin != "default") rows.push_back({key.name, key.get(x.config).dump(), origin});
  }
  return cli::format_table({"KEY", "VALUE", "ORIGIN"}, rows);
}

/// Only what the user said: what is left when the defaults are taken away.
json said(const resolved_config& x) {
  auto result = json::object();
  for (const auto& key : config_keys()) {
    if (x.origins.at(key.name) == "default") continue;
    auto pointer = "/" + key.name;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    result[json::json_pointer{pointer}] = json(key.get(x.config));
  }
  return result;
}

json problem_json(const error& x) {
  return {{"class", std::string{to_string(x.cls)}},
          {"category", x.category},
          {"message", x.message},
          {"hint", x.hint}};
}

/// A file, a preset, or a run: its name or its directory.
std::string file_of(const invocation& in, const std::string& word) {
  std::error_code code;
  auto place = locate_config(word);
  if (!std::filesystem::is_regular_file(place, code))
    if (auto run = find_run(word, in.value("--root"), true)) return run->config_file();
  return place;
}

expected<int> config_show(const invocation& in) {
  auto sources = sources_of(in.list("CONFIG"));
  for (auto& file : sources.files) file = file_of(in, file);
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  bool all = in.has("--resolved");
  auto document = all ? to_json(loaded->config) : said(*loaded);
  if (in.json) {
    json result = {{"config", document}, {"digest", config_digest(loaded->config)}};
    if (in.has("--origin")) result["origins"] = loaded->origins;
    cli::print_json(result);
  } else if (in.has("--origin")) {
    cli::print(origins_table(*loaded, all));
  } else {
    cli::print(document.dump(2) + "\n");
  }
  return cli::exit_ok;
}

expected<int> config_list(const invocation& in) {
  auto presets = json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& name : preset_names()) {
    auto file = locate_config(name);
    presets.push_back({{"name", name}, {"file", file}});
    rows.push_back({name, file});
  }
  if (in.json)
    cli::print_json({{"presets", presets}});
  else
    cli::print(cli::format_table({"PRESET", "FILE"}, rows));
  return cli::exit_ok;
}

constexpr const char* placeholder_model = "MODEL"; // in first_config

expected<int> config_validate(const invocation& in) {
  auto report = examine_config(sources_of(in.list("CONFIG")));
  // As a run would end that finds no such task.
  if (report.problems.empty())
    if (auto tasks = tasks_of(report.resolved.config.tasks); !tasks)
      report.problems.push_back(std::move(tasks.error()));
  bool valid = report.problems.empty();
  if (in.json) {
    json result = {{"valid", valid}, {"problems", json::array()}};
    for (const auto& x : report.problems) result["problems"].push_back(problem_json(x));
    if (valid) result["digest"] = config_digest(report.resolved.config);
    cli::print_json(result);
  } else {
    for (const auto& x : report.problems) cli::print_error(x, false, in.colour_err);
    if (valid) cli::print("valid\n");
    if (valid && report.resolved.config.policy.model == placeholder_model)
      cli::talk("warning: policy.model is still MODEL, the placeholder of `config init`: give the "
                "name by which the server knows your model");
  }
  return valid ? cli::exit_ok : cli::exit_code(report.problems.front());
}

// -- init and diff --------------------------------------------------------------------------------

constexpr const char* first_config =
    R"(// A run of your own model. `kernelmill config schema --markdown` explains every key.
{
  // The server of your model, which writes the kernels: one with OpenAI's API, such as vLLM (kind
  // "vllm") or SGLang ("sglang"). Put the model's name, as the server knows it, in place of MODEL.
  // `kernelmill policy probe http://127.0.0.1:8000/v1` tells what the server can do.
  "policy": {
    "kind": "openai",
    "base_url": "http://127.0.0.1:8000/v1",
    "model": "MODEL",
    "sampling": {"temperature": 1.0, "max_tokens": 8192}
  },
  // `kernelmill task list` shows the ids. Each task gets `groups` groups of `group_size` episodes.
  "tasks": {"ids": ["native/row_sum", "native/softmax"], "groups": 1, "group_size": 4, "max_turns": 4}
}
)";

expected<int> config_init(const invocation& in) {
  auto file = in.has("FILE") ? in.value("FILE") : std::string{"kernelmill.json"};
  std::error_code code;
  if (std::filesystem::exists(file, code))
    return configuration_error("directory_not_empty",
                               "failed to write " + file + ": it is there already",
                               "name another file, or remove it");
  KM_TRY(write_file(file, first_config));
  if (in.json) {
    cli::print_json({{"file", file}});
    return cli::exit_ok;
  }
  cli::talk("wrote " + file +
            "; give policy.base_url and policy.model in it, then\n  kernelmill "
            "config validate " +
            file + "\n  kernelmill run " + file);
  return cli::exit_ok;
}

expected<resolved_config> configuration_of(const invocation& in, const std::string& word) {
  config_sources sources;
  sources.files = {file_of(in, word)};
  return load_config(sources);
}

expected<int> config_diff(const invocation& in) {
  auto a = configuration_of(in, in.value("A"));
  KM_TRY(a);
  auto b = configuration_of(in, in.value("B"));
  KM_TRY(b);
  auto changes = json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& key : config_keys()) {
    auto before = key.get(a->config), after = key.get(b->config);
    if (before == after) continue;
    rows.push_back({key.name, cli::clean(before.dump()), cli::clean(after.dump()),
                    key.may_change ? "how" : "what"});
    changes.push_back(
        {{"key", key.name}, {"a", before}, {"b", after}, {"may_change", key.may_change}});
  }
  bool same = config_digest(a->config) == config_digest(b->config);
  if (in.json) {
    cli::print_json({{"same_experiment", same}, {"changes", changes}});
  } else if (rows.empty()) {
    cli::talk("no key differs");
  } else {
    cli::print(cli::format_table({"KEY", "A", "B", "SAYS"}, rows));
    cli::talk(same ? "both measure the same: no key that says what is measured differs"
                   : "keys that say `what` is measured make them different experiments");
  }
  return cli::exit_ok;
}

expected<int> config_schema(const invocation& in) {
  bool markdown = in.has("--markdown");
  if (in.json)
    cli::print_json(markdown ? json{{"markdown", config_reference()}}
                             : json{{"schema", kernelmill::config_schema()}});
  else if (markdown)
    cli::print(config_reference());
  else
    cli::print(kernelmill::config_schema().dump(2) + "\n");
  return cli::exit_ok;
}

} // namespace

cli::command config_list_row() {
  return {"config list",
          "Lists the presets: configurations that are part of the installation.",
          "kernelmill config list\n"
          "kernelmill run quickstart",
          "Commands that take a configuration file also take the name of a preset.",
          {},
          {},
          config_list};
}

cli::command config_show_row() {
  return {"config show",
          "Shows the configuration that results from files, environment and overrides.",
          "kernelmill config show configs/quickstart.json tasks.groups=2\n"
          "kernelmill config show --resolved --origin quickstart\n"
          "kernelmill config show quickstart tasks.ids+=torch/row_softmax tasks.group_size=8\n"
          "kernelmill config show quickstart tasks.ids=@ids.txt\n"
          "kernelmill config show first",
          "The name of a run, or its directory, stands for the configuration that it has.\n"
          "Later layers win: defaults, $XDG_CONFIG_HOME/kernelmill/config.json (else that of "
          "~/.config), files from left to\n"
          "right, KERNELMILL_SECTION__KEY, overrides. Objects merge, lists replace; += adds to a "
          "list. key=@FILE takes the text\n"
          "of a file, of a list one value a line.",
          {config_words()},
          {flag("--resolved", "Shows every key, including defaults."),
           flag("--origin", "Shows the origin of each value."), runs_root()},
          config_show};
}

cli::command config_init_row() {
  return without_tables(
      {"config init",
       "Writes a configuration to begin with, for a model of your own.",
       "kernelmill config init\nkernelmill config init mine.json",
       "It never replaces a file.",
       {{"FILE", "File to write. Default: kernelmill.json.", false, false, completes::file, {}}},
       {},
       config_init});
}

cli::command config_diff_row() {
  return {"config diff",
          "Lists the keys in which two configurations differ, defaults included.",
          "kernelmill config diff quickstart mine.json\nkernelmill config diff first second",
          "SAYS: `what` is measured, or only `how` it is done, which a resumed run may change.",
          {{"A", "Configuration file, preset, or run.", true, false, completes::config, {}},
           {"B", "The other one.", true, false, completes::config, {}}},
          {runs_root()},
          config_diff};
}

cli::command config_validate_row() {
  return without_tables({"config validate",
                         "Checks a configuration and lists all errors.",
                         "kernelmill config validate configs/quickstart.json",
                         "",
                         {config_words()},
                         {},
                         config_validate});
}

cli::command config_schema_row() {
  return without_tables({"config schema",
                         "Prints the JSON Schema of a configuration file.",
                         "kernelmill config schema > kernelmill.schema.json",
                         "",
                         {},
                         {flag("--markdown", "Prints the reference page instead.")},
                         config_schema});
}

} // namespace kernelmill::commands
