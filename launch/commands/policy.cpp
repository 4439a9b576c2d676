#include <cstdio>

#include <nlohmann/json.hpp>

#include "actors/policy_client/scripted_server.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"

namespace kernelmill::commands {

expected<int> policy_scripted(const invocation& in) {
  auto port = in.integer("--port", 0, 65535);
  if (!port) return tl::unexpected<error>{port.error()};
  auto script = load_policy_script(in.value("--script"));
  if (!script) return tl::unexpected<error>{script.error()};
  if (const auto& kind = in.value("--kind"); !kind.empty()) script->kind = *parse_server_kind(kind);
  interrupt signals;
  auto server =
      scripted_server::start(std::move(*script), in.value("--host"), static_cast<uint16_t>(*port));
  if (!server) return tl::unexpected<error>{server.error()};
  // Printed at once: whoever starts us with port 0 waits for this line.
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

} // namespace kernelmill::commands
