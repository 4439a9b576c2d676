#include <cstdio>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/options.hpp"
#include "launch/server/scripted/scripted_server.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

expected<int> policy_scripted(const invocation& in) {
  auto port = in.integer("--port", 0, 65535);
  KM_TRY(port);
  auto script = load_policy_script(in.value("--script"));
  KM_TRY(script);
  if (const auto& kind = in.value("--kind"); !kind.empty()) script->kind = *parse_server_kind(kind);
  interrupt signals;
  auto server =
      scripted_server::start(std::move(*script), in.value("--host"), static_cast<uint16_t>(*port));
  KM_TRY(server);
  // Printed at once: a program that starts us with port 0 waits for this line.
  if (in.json)
    cli::print_json({{"base_url", (*server)->base_url()}, {"port", (*server)->port()}});
  else
    cli::print((*server)->base_url() + "\n");
  std::fflush(stdout);
  cli::talk("serving; press Ctrl-C to end it");
  signals.wait();
  cli::talk("answered " + std::to_string((*server)->requests()) + " requests");
  return cli::exit_ok;
}

} // namespace

cli::command policy_scripted_row() {
  return {
      "policy scripted",
      "Starts a policy server that answers from a script.",
      "kernelmill policy scripted --script configs/policies/quickstart/script.json --port 8080\n"
      "kernelmill policy scripted --script script.json --kind vllm --port 8000",
      "Prints its address on stdout once it listens. Format of a script: "
      "docs/reference/policy-script.md.",
      {},
      {{"--script", "FILE", "Script file.", "", true, {}, completes::file},
       {"--port", "N", "Port. 0 takes a free one.", "0", false, {}, nothing},
       {"--host", "HOST", "Address to listen on.", "127.0.0.1", false, {}, nothing},
       {"--kind", "KIND", "Protocol to speak. Default: the script's kind.", "", false,
        server_kinds(), nothing}},
      policy_scripted};
}

} // namespace kernelmill::commands
