#include <algorithm>

#include "actors/policy_client/server_probe.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using nlohmann::ordered_json;

ordered_json document_of(const std::string& url, const server_report& x) {
  ordered_json result = {{"base_url", url},
                         {"kind", to_string(x.kind)},
                         {"kind_was_found", x.kind_was_found},
                         {"model", x.model},
                         {"models", x.models},
                         {"version", x.version},
                         {"weight_version", x.weight_version}};
  auto& list = result["capabilities"] = ordered_json::array();
  for (const auto& c : x.capabilities)
    list.push_back({{"name", c.name},
                    {"has", c.has ? ordered_json(*c.has) : ordered_json(nullptr)},
                    {"seen", c.seen},
                    {"without_it", c.without}});
  return result;
}

std::string text_of(const server_report& x, bool colour) {
  auto result = "kind     " + std::string{to_string(x.kind)} +
                (x.kind_was_found ? " (found by its routes)" : "") + "\nmodel    " +
                cli::clean(x.model) + "\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& c : x.capabilities)
    rows.push_back({c.name, !c.has ? "unknown" : *c.has ? "yes" : "no", cli::clean(c.seen)});
  result += cli::format_table({"CAPABILITY", "HAS", "SEEN"}, rows);
  bool any = false;
  for (const auto& c : x.capabilities) {
    if (c.has.value_or(false)) continue;
    if (!any) result += "\n" + cli::paint(colour, cli::colour::bold, "What is lost") + "\n";
    any = true;
    result += "  " + c.name + ": " + c.without + "\n";
  }
  return result;
}

expected<int> policy_probe(const invocation& in) {
  policy_config config;
  config.base_url = in.value("URL");
  config.model = in.value("--model");
  config.api_key_env = in.value("--api-key-env");
  config.api_key_file = in.value("--api-key-file");
  config.ca_file = in.value("--ca-file");
  auto timeout = in.integer("--timeout-ms", 1, 3'600'000);
  KM_TRY(timeout);
  auto checked = config;
  if (checked.model.empty()) checked.model = "?"; // the server may know one
  KM_TRY(validate(checked));
  std::optional<server_kind> kind;
  if (const auto& name = in.value("--kind"); !name.empty()) kind = parse_server_kind(name);
  cli::show_activity("asking " + config.base_url);
  auto report = probe_server(config, kind, static_cast<uint32_t>(*timeout));
  // The client's own hint names keys of a run's configuration.
  if (!report && report.error().category == "policy_auth")
    report.error().hint =
        config.api_key_env.empty() && config.api_key_file.empty()
            ? "name the variable that holds the key: --api-key-env NAME, or a "
              "file: --api-key-file FILE"
            : "check the key in " +
                  (config.api_key_env.empty() ? config.api_key_file : "$" + config.api_key_env);
  KM_TRY(report);
  if (in.json)
    cli::print_json(document_of(config.base_url, *report));
  else
    cli::print(text_of(*report, in.colour_out));
  return cli::exit_ok;
}

} // namespace

cli::command policy_probe_row() {
  return {
      "policy probe",
      "Tests what a policy server can do, and lists what a trainer loses without each missing "
      "feature.",
      "kernelmill policy probe http://127.0.0.1:8000/v1\n"
      "kernelmill policy probe http://127.0.0.1:8000/v1 --kind vllm --model my-model --json",
      "Samples a few dozen tokens. Default of --kind: by the server's routes. Default of "
      "--model: the first model that\n"
      "the server lists. Exit code 69 when no server answers.",
      {{"URL", "Address with its version path (/v1).", true, false, nothing, {}}},
      {{"--kind", "KIND", "Protocol of the server.", "", false, server_kinds(), nothing},
       {"--model", "MODEL", "Model to request.", "", false, {}, nothing},
       {"--api-key-env",
        "NAME",
        "Environment variable that holds the API key.",
        "",
        false,
        {},
        nothing},
       {"--api-key-file", "FILE", "File that holds the API key.", "", false, {}, completes::file},
       {"--ca-file", "FILE", "Certificates to trust.", "", false, {}, completes::file},
       {"--timeout-ms", "MS", "Timeout of one request.", "60000", false, {}, nothing}},
      policy_probe};
}

} // namespace kernelmill::commands
