// `kernelmill policy attach`, `list`, `detach`, `weights`: what a head's runs sample from.

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

expected<int> show(const invocation& in, const expected<json>& answer, const std::string& said) {
  KM_TRY(answer);
  if (in.json)
    cli::print_json(*answer);
  else
    cli::talk(said);
  return cli::exit_ok;
}

std::string cell_of(const json& x, const char* key) {
  return cli::clean(text_in(x, key));
}

std::string list_text(const json& x) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& s : x.value("servers", json::array()))
    rows.push_back({cell_of(s, "name"), cell_of(s, "state"), cell_of(s, "kind"),
                    cell_of(s, "model"), cell_of(s, "weights"), count_of(s, "in_flight"),
                    count_of(s, "done"), count_of(s, "failed"), count_of(s, "failed_over"),
                    cell_of(s, "url")});
  auto result = cli::format_table({"SERVER", "STATE", "KIND", "MODEL", "WEIGHTS", "IN FLIGHT>",
                                   "DONE>", "FAILED>", "FAILED OVER>", "ADDRESS"},
                                  rows);
  if (auto waiting = x.value("waiting", uint64_t{0}); waiting > 0)
    result += fmt::format("\n{} requests wait for a server\n", waiting);
  return result;
}

expected<int> policy_attach(const invocation& in) {
  auto most = in.integer("--max-in-flight", 1, 65536);
  KM_TRY(most);
  json facts = {{"url", in.value("URL")}, {"max_in_flight", *most}};
  for (auto key : {"--name", "--kind", "--model", "--tokens", "--api-key-env", "--api-key-file"}) {
    auto name = std::string{key + 2};
    for (auto& c : name)
      if (c == '-') c = '_';
    if (in.has(key)) facts[name] = in.value(key);
  }
  auto answer = ask(in, "policy_attach", {}, facts.dump());
  return show(in, answer,
              !answer ? ""
                      : fmt::format("attached {}: {}, model {}", cell_of(*answer, "name"),
                                    cell_of(*answer, "kind"), cell_of(*answer, "model")));
}

expected<int> policy_detach(const invocation& in) {
  auto patience = in.integer("--drain-ms", 0, 86'400'000);
  KM_TRY(patience);
  const auto& name = in.value("NAME_OR_URL");
  auto how = json{{"drain_ms", *patience}}.dump();
  return show(in, ask(in, "policy_detach", name, how), "draining " + name);
}

expected<int> policy_list(const invocation& in) {
  auto answer = ask(in, "policy_list");
  KM_TRY(answer);
  if (in.json)
    cli::print_json(*answer);
  else
    cli::print(list_text(*answer));
  return cli::exit_ok;
}

expected<int> policy_weights(const invocation& in) {
  const auto& version = in.value("VERSION");
  const auto& server = in.value("--server");
  auto what = json{{"version", version}}.dump();
  return show(in, ask(in, "policy_weights", server, what),
              fmt::format("weights {} at {}", version, server.empty() ? "every server" : server));
}

} // namespace

cli::command policy_attach_row() {
  return {
      "policy attach",
      "Attaches a policy server to a head, also while runs are in progress.",
      "kernelmill policy attach http://10.0.0.5:8000/v1\n"
      "kernelmill policy attach http://10.0.0.5:8000/v1 --kind vllm --model my-model --name a",
      "Runs with policy.kind=attached use all servers of the head. A conversation stays with one "
      "server while that\n"
      "server works. Without --kind or --model the head asks the server. With both, the server "
      "need not be up yet.\n"
      "Only the key's name is sent; the head reads the key. A head that restarts attaches its "
      "servers again.",
      {{"URL",
        "Address as the head reaches it, with its version path (/v1).",
        true,
        false,
        nothing,
        {}}},
      with_head_options(
          {{"--name", "NAME", "Name of the server. Default: HOST:PORT.", "", false, {}, nothing},
           {"--kind", "KIND", "Protocol of the server.", "", false, server_kinds(), nothing},
           {"--model", "MODEL", "Model to request.", "", false, {}, nothing},
           {"--tokens",
            "WHAT",
            "`exact`: it takes token ids, and runs with policy.tokens=exact may use it. Default: "
            "as probed, or as servers of its kind.",
            "",
            false,
            {"exact", "chat"},
            nothing},
           {"--max-in-flight", "N", "Maximum number of open requests.", "64", false, {}, nothing},
           {"--api-key-env",
            "NAME",
            "Environment variable on the head that holds the API key.",
            "",
            false,
            {},
            nothing},
           {"--api-key-file",
            "FILE",
            "File on the head that holds the API key.",
            "",
            false,
            {},
            nothing}}),
      policy_attach};
}

cli::command policy_list_row() {
  return {"policy list",
          "Lists the policy servers of a head.",
          "kernelmill policy list",
          "`resting`: the server fails and gets no requests while others work. `unattached`: the "
          "head could not attach\n"
          "it after a restart.",
          {},
          with_head_options({}),
          policy_list};
}

cli::command policy_detach_row() {
  return {
      "policy detach",
      "Detaches a policy server from a head. Open requests may finish.",
      "kernelmill policy detach 10.0.0.5:8000\n"
      "kernelmill policy detach a --drain-ms 0",
      "Returns at once. `kernelmill policy list` shows the server until it is drained. Requests "
      "still open after\n"
      "--drain-ms go to another server, or wait for one.",
      {{"NAME_OR_URL",
        "Name or address of a server, as `policy list` shows it.",
        true,
        false,
        nothing,
        {}}},
      with_head_options({{"--drain-ms",
                          "MS",
                          "Time that open requests have to finish.",
                          "600000",
                          false,
                          {},
                          nothing}}),
      policy_detach};
}

cli::command policy_weights_row() {
  return {"policy weights",
          "Declares the version of the weights that servers use from now on.",
          "kernelmill policy weights step-12\n"
          "kernelmill policy weights step-12 --server a",
          "The version is recorded with every turn as half-open spans of tokens. A version "
          "reported by a server of kind\n"
          "vllm or sglang takes precedence. A completion in flight gets one span with the "
          "version BEFORE..AFTER.",
          {{"VERSION", "Any text without blanks and without `..`.", true, false, nothing, {}}},
          with_head_options({{"--server",
                              "NAME",
                              "Only this server. Default: all servers.",
                              "",
                              false,
                              {},
                              nothing}}),
          policy_weights};
}

} // namespace kernelmill::commands
