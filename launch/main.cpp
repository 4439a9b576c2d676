// kernelmill: the commands. Each is one row of the table below; its code is in launch/commands.

#include <csignal>

#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

namespace {

using cli::argument_spec;
using cli::completes;
using cli::option_spec;

const argument_spec config_words{
    "CONFIG",
    "A configuration file or preset, or an override a.b=value, +a.b=value, ~a.b.",
    true,
    true,
    completes::config,
    {}};
const argument_spec run_name{
    "RUN", "Name of a run below runs/, or its directory.", true, false, completes::run, {}};

} // namespace

const cli::command_table& all() {
  static const cli::command_table table = {
      {"config show",
       "Shows what the files, the environment and the overrides come to.",
       "kernelmill config show configs/quickstart.json tasks.groups=2\n"
       "kernelmill config show --resolved --origin quickstart",
       "",
       {config_words},
       {{"--resolved", "", "Shows every key, defaults too.", "", false, {}, {}},
        {"--origin", "", "Says where each value comes from.", "", false, {}, {}}},
       config_show},
      {"config validate",
       "Checks a configuration and lists everything that is wrong with it.",
       "kernelmill config validate configs/quickstart.json",
       "",
       {config_words},
       {},
       config_validate},
      {"config schema",
       "Prints the JSON Schema of a configuration file.",
       "kernelmill config schema > kernelmill.schema.json",
       "",
       {},
       {{"--markdown", "", "Prints the reference page instead.", "", false, {}, {}}},
       config_schema},
      {"completion",
       "Prints a completion script for a shell.",
       "source <(kernelmill completion bash)",
       "",
       {{"SHELL", "bash, zsh or fish.", true, false, completes::nothing, {"bash", "zsh", "fish"}}},
       {},
       completion},
      {"version",
       "Prints the versions of the program, its formats and its libraries.",
       "kernelmill version --json",
       "",
       {},
       {},
       version},
      {"__complete",
       "Prints names for completion scripts.",
       "kernelmill __complete task",
       "",
       {{"KIND", "task or run.", true, false, completes::nothing, {"task", "run"}}},
       {},
       complete,
       true},
      {"__reference",
       "Prints docs/reference/cli.md.",
       "kernelmill __reference",
       "",
       {},
       {},
       reference,
       true},
  };
  return table;
}

} // namespace kernelmill::commands

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN); // a reader of ours that goes away is an error of a write, not our end
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
