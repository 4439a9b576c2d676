#include <filesystem>

#include "gpu/task/task.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/program/errors_page.hpp"
#include "launch/commands/program/tools_page.hpp"
#include "launch/config/load.hpp"
#include "launch/config/paths.hpp"
#include "launch/server/api/api_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

/// Names of the runs in ./runs. Errors are silence: a shell is asking.
void print_run_names() {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator{"runs", code})
    if (entry.is_directory(code)) cli::print(entry.path().filename().string() + "\n");
}

expected<int> completion(const invocation& in) {
  auto script = cli::completion_script(all(), in.value("SHELL"));
  if (in.json)
    cli::print_json({{"shell", in.value("SHELL")}, {"script", script}});
  else
    cli::print(script);
  return 0;
}

expected<int> complete(const invocation& in) {
  if (in.value("KIND") == "run") {
    print_run_names();
  } else if (in.value("KIND") == "preset") {
    for (const auto& name : preset_names()) cli::print(name + "\n");
  } else if (auto ids = list_tasks(default_tasks_roots())) {
    for (const auto& id : *ids) cli::print(id + "\n");
  }
  return 0;
}

expected<int> reference(const invocation& in) {
  const auto& page = in.value("PAGE");
  cli::print(page == "errors"         ? errors_page()
             : page == "tools"        ? tools_page()
             : page == "openapi"      ? services::openapi_text()
             : page == "page-openapi" ? page_api_text()
             : page == "man"          ? cli::manual_page(all())
                                      : cli::reference_page(all()));
  return 0;
}

} // namespace

cli::command completion_row() {
  return without_tables(
      {"completion",
       "Prints a completion script for a shell.",
       "source <(kernelmill completion bash)",
       "",
       {{"SHELL", "bash, zsh or fish.", true, false, nothing, {"bash", "zsh", "fish"}}},
       {},
       completion});
}

cli::command complete_row() {
  return {"__complete",
          "Prints names for completion scripts.",
          "kernelmill __complete task",
          "",
          {{"KIND", "task, run or preset.", true, false, nothing, {"task", "run", "preset"}}},
          {},
          complete,
          true};
}

cli::command reference_row() {
  return {"__reference",
          "Prints a page of docs/reference/ that is made from tables.",
          "kernelmill __reference errors",
          "",
          {{"PAGE",
            "cli, errors, tools, openapi, page-openapi or man; without it cli.",
            false,
            false,
            nothing,
            {"cli", "errors", "tools", "openapi", "page-openapi", "man"}}},
          {},
          reference,
          true};
}

} // namespace kernelmill::commands
