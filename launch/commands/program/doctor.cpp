#include "launch/commands/program/doctor.hpp"

#include <algorithm>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

const char* to_string(finding_state x) {
  switch (x) {
    case finding_state::ok: return "ok";
    case finding_state::none: return "none";
    case finding_state::warn: return "warn";
    case finding_state::fail: return "fail";
  }
  return "fail";
}

namespace {

cli::colour shade(finding_state x) {
  return x == finding_state::ok     ? cli::colour::green
         : x == finding_state::none ? cli::colour::dim
         : x == finding_state::warn ? cli::colour::yellow
                                    : cli::colour::red;
}

nlohmann::ordered_json to_json(const finding& x) {
  return {{"name", x.name},
          {"state", to_string(x.state)},
          {"detail", x.detail},
          {"cost", x.cost},
          {"remedy", x.remedy}};
}

nlohmann::ordered_json to_json(const cuda::gpu& x) {
  return {{"index", x.index},
          {"name", x.name},
          {"uuid", x.uuid},
          {"architecture", x.architecture},
          {"memory_bytes", x.memory_bytes},
          {"node", x.node}};
}

void print_line(const finding& x, bool colour, size_t width) {
  std::string name = x.name + std::string(width - x.name.size(), ' ');
  std::string state = to_string(x.state);
  state.resize(4, ' ');
  auto indent = width + 7;
  auto line = [&](const std::string& first, size_t columns, const std::string& text) {
    cli::print(cli::hanging(first, columns, cli::clean(text)));
  };
  line(" " + cli::paint(colour, shade(x.state), state) + " " + name + " ", indent, x.detail);
  std::string blank(indent, ' ');
  if (!x.cost.empty()) line(blank + "costs: ", indent + 7, x.cost);
  if (!x.remedy.empty()) line(blank + "remedy: ", indent + 8, x.remedy);
}

const std::vector<std::string> doctor_columns{"state", "check", "detail", "cost", "remedy"};

// The findings for programs: with -o csv, --columns or --no-headers.
void print_table(const findings& all) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : all)
    rows.push_back({to_string(x.state), x.name, cli::clean(x.detail), cli::clean(x.cost),
                    cli::clean(x.remedy)});
  cli::print(cli::format_table(doctor_columns, rows));
}

expected<int> doctor(const invocation& in) {
  findings all;
  cli::show_activity("examining this machine");
  examine_machine(all);
  cli::show_activity("asking the compiler and the helpers");
  examine_tools(all);
  examine_compilers(all, [](const std::string& name) { cli::show_activity("building: " + name); });
  cli::show_activity("looking for Python with torch");
  examine_torch(all);
  cli::show_activity("trying each layer of the sandbox");
  examine_sandbox(all);
  examine_counters(all);
  examine_disk(all, in.value("--dir"));
  cli::show_activity("asking for GPUs");
  auto accelerators = find_accelerators();
  examine_accelerators(all, accelerators);
  auto count = [&](finding_state s) {
    return std::count_if(all.begin(), all.end(), [&](const finding& x) { return x.state == s; });
  };
  auto warnings = count(finding_state::warn);
  auto failures = count(finding_state::fail);
  if (in.json) {
    nlohmann::ordered_json document = {
        {"ok", failures == 0}, {"warnings", warnings}, {"failures", failures}};
    document["findings"] = nlohmann::ordered_json::array();
    for (const auto& x : all) document["findings"].push_back(to_json(x));
    document["gpus"] = nlohmann::ordered_json::array();
    for (const auto& x : accelerators.gpus) document["gpus"].push_back(to_json(x));
    cli::print_json(document);
  } else if (cli::prints_tables_alone()) {
    print_table(all);
  } else {
    size_t width = 0;
    for (const auto& x : all) width = std::max(width, x.name.size());
    for (const auto& x : all) print_line(x, in.colour_out, width);
    cli::print(counted(all.size(), "check") + ", " + counted(warnings, "warning") + ", " +
               counted(failures, "failure") + "; " + std::to_string(count(finding_state::none)) +
               " missing but not needed\n");
  }
  return failures == 0 ? cli::exit_ok : cli::exit_failed;
}

} // namespace

cli::command doctor_row() {
  return {"doctor",
          "Checks this machine and lists what is missing.",
          "kernelmill doctor",
          "Exit code 1 when a check fails. Warnings do not change the exit code.",
          {},
          {{"--dir",
            "DIR",
            "Directory in which runs would be stored.",
            "runs",
            false,
            {},
            completes::directory}},
          doctor,
          false,
          {},
          doctor_columns};
}

} // namespace kernelmill::commands
