// `kernelmill actor`, `node ls`, `gpu ls`: the actors, nodes and GPUs, and what each does.

#include <fmt/format.h>

#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
using table_rows = std::vector<std::vector<std::string>>;

/// The list under `key`, as JSON or as a table.
expected<int> show_list(const invocation& in, const char* view, const char* key, const json& query,
                        const std::vector<std::string>& headers,
                        std::vector<std::string> (*row)(const json&)) {
  auto document = look(in, view, query);
  KM_TRY(document);
  if (in.json) {
    cli::print_json(*document);
    return 0;
  }
  table_rows rows;
  for (const auto& x : (*document)[key]) rows.push_back(row(x));
  if (rows.empty())
    cli::talk(in.has("--where") ? "nothing matches"
              : asks_head(in)   ? "the head shows none"
                                : "no run is in progress below " + in.value("--root"));
  else
    cli::print(cli::format_table(headers, rows));
  return 0;
}

std::string where_text(const json& x) {
  auto node = x.value("node", ""), run = x.value("run", "");
  return one_line(node.empty() ? run : run.empty() ? node : node + " " + run);
}

// The circuit breaker's words say of a policy client whether its server answers.
std::string state_text(const json& x) {
  auto state = cell(x, "state");
  if (cell(x, "actor") != "policy_client") return state;
  return state == "closed"      ? "serving"
         : state == "open"      ? "not answering"
         : state == "half_open" ? "trying again"
                                : state;
}

expected<int> actor_list(const invocation& in) {
  auto query = list_query(in);
  if (in.has("RUN")) query["run"] = in.value("RUN");
  if (in.has("--all")) query["all"] = true;
  return show_list(
      in, "actors", "actors", query,
      {"WHERE", "ACTOR", "ID", "STATE", "MAILBOX>", "OLDEST [s]>", "PROGRESS [s]>", "DETAIL"},
      [](const json& x) -> std::vector<std::string> {
        return {where_text(x),
                cell(x, "actor"),
                cell(x, "id"),
                state_text(x),
                count_cell(x, "mailbox"),
                seconds_cell(x, "oldest_seconds"),
                x["progress_seconds"].is_number()
                    ? seconds_cell(x, "progress_seconds") + (cli::plain_cells() ? "" : " ago")
                    : "-",
                one_line(cell(x, "detail"), 120)};
      });
}

expected<int> actor_show(const invocation& in) {
  json query = {{"name", in.value("NAME")}};
  if (in.has("--run")) query["run"] = in.value("--run");
  auto document = look(in, "actors", query);
  KM_TRY(document);
  if (in.json) {
    cli::print_json(*document);
    return 0;
  }
  for (const auto& x : (*document)["actors"]) {
    table_rows rows;
    for (const auto& [key, value] : x.items()) {
      if (value.is_null() || (value.is_string() && value.get<std::string>().empty())) continue;
      if (!value.is_object()) {
        rows.push_back({key, cell(x, key.c_str())});
        continue;
      }
      for (const auto& [name, number] : value.items())
        rows.push_back({one_line(name), one_line(number.dump())});
    }
    cli::print(cli::format_table({"KEY", "VALUE"}, rows) + "\n");
  }
  return 0;
}

expected<int> node_list(const invocation& in) {
  return show_list(in, "nodes", "nodes", list_query(in),
                   {"NODE", "STATE", "FOR [s]>", "SLOTS>", "BUSY>", "COMPILERS>", "LOAD>",
                    "FREE MEM [bytes]>", "HARDWARE"},
                   [](const json& x) -> std::vector<std::string> {
                     auto memory = x.find("memory_free_bytes");
                     return {cell(x, "node"),
                             cell(x, "state"),
                             seconds_cell(x, "age_seconds"),
                             count_cell(x, "slots"),
                             count_cell(x, "busy"),
                             count_cell(x, "compilers"),
                             number_cell(x, "load"),
                             memory == x.end() || !memory->is_number() ? "-"
                             : cli::plain_cells() ? fmt::format("{:.0f}", memory->get<double>())
                                                  : cli::format_bytes(memory->get<double>()),
                             cell(x, "hardware")};
                   });
}

expected<int> gpu_list(const invocation& in) {
  return show_list(in, "gpus", "gpus", list_query(in),
                   {"NODE", "SLOT", "STATE", "FOR [s]>", "DONE>", "FAULTS>", "GPU", "MHZ>", "C>",
                    "W>", "SLOWED", "DETAIL"},
                   [](const json& x) -> std::vector<std::string> {
                     return {cell(x, "node"),
                             cell(x, "slot"),
                             cell(x, "state"),
                             seconds_cell(x, "age_seconds"),
                             count_cell(x, "done"),
                             count_cell(x, "infrastructure_faults"),
                             cell(x, "gpu"),
                             count_cell(x, "clock_mhz"),
                             count_cell(x, "celsius"),
                             count_cell(x, "watts"),
                             x.contains("slowed") ? (x["slowed"].get<bool>() ? "yes" : "no") : "-",
                             one_line(cell(x, "detail"), 80)};
                   });
}

} // namespace

cli::command actor_list_row() {
  return {"actor ls",
          "Lists actors: mailbox, age of the oldest message, last progress.",
          "kernelmill actor ls\nkernelmill actor ls first --where state=stuck\n"
          "kernelmill actor ls --head 10.0.0.1:7612 --all",
          "An actor that has not answered for two seconds is `stuck`. PROGRESS is known after the "
          "second look.\nEpisodes are listed by `kernelmill ps`.",
          {{"RUN",
            "Name of a run, or its directory. Default: all runs below --root.",
            false,
            false,
            completes::run,
            {}}},
          with_list_options({flag("--all", "Lists the monitor's own actors too.")}),
          actor_list};
}

cli::command actor_show_row() {
  return {"actor show",
          "Shows all details of an actor.",
          "kernelmill actor show lineage\nkernelmill actor show gpu_runner/cpu0 --run first",
          "",
          {{"NAME",
            "Its role, its id, ROLE/ID, or its number, as `actor ls` shows them.",
            true,
            false,
            nothing,
            {}}},
          with_view_options({{"--run", "RUN", "Shows this run only.", "", false, {}, nothing}}),
          actor_show};
}

cli::command node_list_row() {
  return {"node ls",
          "Lists active machines: slots, load, memory.",
          "kernelmill node ls --head 10.0.0.1:7612\nkernelmill node ls",
          "With --head the nodes of the cluster, those that were lost too; else this machine, once "
          "for each run in\nprogress.",
          {},
          with_list_options({}),
          node_list};
}

cli::command gpu_list_row() {
  return {
      "gpu ls",
      "Lists evaluation slots and their GPUs.",
      "kernelmill gpu ls --head 10.0.0.1:7612\nkernelmill gpu ls --json",
      "FOR is the time of the job that a slot evaluates, without its wait, or since the last one "
      "ended.",
      {},
      with_list_options({}),
      gpu_list};
}

} // namespace kernelmill::commands
