#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/sources.hpp"
#include "launch/config/keys.hpp"
#include "launch/config/schema.hpp"
#include "messages/base/json_value.hpp"

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

expected<int> config_show(const invocation& in) {
  auto loaded = load_config(sources_of(in.list("CONFIG")));
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

expected<int> config_validate(const invocation& in) {
  auto report = examine_config(sources_of(in.list("CONFIG")));
  bool valid = report.problems.empty();
  if (in.json) {
    json result = {{"valid", valid}, {"problems", json::array()}};
    for (const auto& x : report.problems) result["problems"].push_back(problem_json(x));
    if (valid) result["digest"] = config_digest(report.resolved.config);
    cli::print_json(result);
  } else {
    for (const auto& x : report.problems) cli::print_error(x, false, in.colour_err);
    if (valid) cli::print("valid\n");
  }
  return valid ? cli::exit_ok : cli::exit_code(report.problems.front());
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
          "kernelmill config show --resolved --origin quickstart",
          "",
          {config_words()},
          {flag("--resolved", "Shows every key, including defaults."),
           flag("--origin", "Shows the origin of each value.")},
          config_show};
}

cli::command config_validate_row() {
  return {"config validate",
          "Checks a configuration and lists all errors.",
          "kernelmill config validate configs/quickstart.json",
          "",
          {config_words()},
          {},
          config_validate};
}

cli::command config_schema_row() {
  return {"config schema",
          "Prints the JSON Schema of a configuration file.",
          "kernelmill config schema > kernelmill.schema.json",
          "",
          {},
          {flag("--markdown", "Prints the reference page instead.")},
          config_schema};
}

} // namespace kernelmill::commands
