// `kernelmill policy attach`, `list`, `detach`, `weights`: what a head's runs sample from.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/head_asking.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

expected<int> show(const invocation& in, const expected<json>& answer, const std::string& said) {
  if (!answer) return tl::unexpected<error>{answer.error()};
  if (in.json)
    cli::print_json(*answer);
  else
    cli::talk(said);
  return cli::exit_ok;
}

std::string text_of(const json& x, const char* key) {
  return cli::clean(x.value(key, std::string{}));
}

std::string list_text(const json& x) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& s : x.value("servers", json::array()))
    rows.push_back({text_of(s, "name"), text_of(s, "state"), text_of(s, "kind"),
                    text_of(s, "model"), text_of(s, "weights"), count_of(s, "in_flight"),
                    count_of(s, "done"), count_of(s, "failed"), count_of(s, "failed_over"),
                    text_of(s, "url")});
  auto result = cli::format_table({"SERVER", "STATE", "KIND", "MODEL", "WEIGHTS", "IN FLIGHT>",
                                   "DONE>", "FAILED>", "FAILED OVER>", "ADDRESS"},
                                  rows);
  if (auto waiting = x.value("waiting", uint64_t{0}); waiting > 0)
    result += fmt::format("\n{} requests wait for a server\n", waiting);
  return result;
}

} // namespace

expected<int> policy_attach(const invocation& in) {
  auto most = in.integer("--max-in-flight", 1, 65536);
  if (!most) return tl::unexpected<error>{most.error()};
  json facts = {{"url", in.value("URL")}, {"max_in_flight", *most}};
  for (auto key : {"--name", "--kind", "--model", "--api-key-env", "--api-key-file"}) {
    auto name = std::string{key + 2};
    for (auto& c : name)
      if (c == '-') c = '_';
    if (in.has(key)) facts[name] = in.value(key);
  }
  auto answer = ask(in, "policy_attach", {}, facts.dump());
  return show(in, answer,
              !answer ? ""
                      : fmt::format("attached {}: {}, model {}", text_of(*answer, "name"),
                                    text_of(*answer, "kind"), text_of(*answer, "model")));
}

expected<int> policy_detach(const invocation& in) {
  auto patience = in.integer("--drain-ms", 0, 86'400'000);
  if (!patience) return tl::unexpected<error>{patience.error()};
  const auto& name = in.value("NAME_OR_URL");
  auto how = json{{"drain_ms", *patience}}.dump();
  return show(in, ask(in, "policy_detach", name, how), "draining " + name);
}

expected<int> policy_list(const invocation& in) {
  auto answer = ask(in, "policy_list");
  if (!answer) return tl::unexpected<error>{answer.error()};
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

} // namespace kernelmill::commands
