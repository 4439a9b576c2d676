// kernelmill: the commands. Each is one row of a table; its code is in launch/commands.

#include <csignal>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "launch/command_rows.hpp"
#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

namespace {

constexpr auto nothing = cli::completes::nothing;

void add_config_commands(cli::command_table& table) {
  table.push_back({"config list",
                   "Lists the presets: configurations that come with the program.",
                   "kernelmill config list\n"
                   "kernelmill run quickstart",
                   "A command that takes a configuration takes a preset's name too.",
                   {},
                   {},
                   config_list});
  table.push_back({"config show",
                   "Shows what the files, the environment and the overrides come to.",
                   "kernelmill config show configs/quickstart.json tasks.groups=2\n"
                   "kernelmill config show --resolved --origin quickstart",
                   "",
                   {config_words()},
                   {flag("--resolved", "Shows every key, defaults too."),
                    flag("--origin", "Says where each value comes from.")},
                   config_show});
  table.push_back({"config validate",
                   "Checks a configuration and lists everything that is wrong with it.",
                   "kernelmill config validate configs/quickstart.json",
                   "",
                   {config_words()},
                   {},
                   config_validate});
  table.push_back({"config schema",
                   "Prints the JSON Schema of a configuration file.",
                   "kernelmill config schema > kernelmill.schema.json",
                   "",
                   {},
                   {flag("--markdown", "Prints the reference page instead.")},
                   config_schema});
}

void add_other_commands(cli::command_table& table) {
  table.push_back({"completion",
                   "Prints a completion script for a shell.",
                   "source <(kernelmill completion bash)",
                   "",
                   {{"SHELL", "bash, zsh or fish.", true, false, nothing, {"bash", "zsh", "fish"}}},
                   {},
                   completion});
  table.push_back({"version",
                   "Prints the versions of the program, its formats and its libraries.",
                   "kernelmill version --json",
                   "",
                   {},
                   {},
                   version});
  table.push_back(
      {"__complete",
       "Prints names for completion scripts.",
       "kernelmill __complete task",
       "",
       {{"KIND", "task, run or preset.", true, false, nothing, {"task", "run", "preset"}}},
       {},
       complete,
       true});
  table.push_back({"__reference",
                   "Prints docs/reference/cli.md.",
                   "kernelmill __reference",
                   "",
                   {},
                   {},
                   reference,
                   true});
}

} // namespace

const cli::command_table& all() {
  static const auto table = [] {
    cli::command_table result;
    add_run_commands(result);
    add_task_commands(result);
    add_cluster_commands(result);
    add_credentials_commands(result);
    add_policy_and_index_commands(result);
    add_config_commands(result);
    add_other_commands(result);
    return result;
  }();
  return table;
}

} // namespace kernelmill::commands

// This process holds keys: no image of its memory is written, and none can be taken by another
// process of the same user. What it starts sets its own limits.
static void keep_memory_private() {
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char** argv) {
  keep_memory_private();
  // A reader of ours that goes away and a file that may not grow are errors of a write, not our
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
