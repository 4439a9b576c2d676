// `kernelmill fsck`: checks what a run has stored, and repairs what can be.

#include <algorithm>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/fsck/fsck.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

json document_of(const run_directory& run, const fsck_report& x, bool sound) {
  json result = {{"run", run.name},      {"directory", run.path},     {"sound", sound},
                 {"records", x.records}, {"turns", x.turns},          {"artifacts", x.artifacts},
                 {"lines", x.lines},     {"findings", json::array()}, {"quarantine", nullptr}};
  for (const auto& f : x.findings)
    result["findings"].push_back(
        {{"state", to_string(f.state)}, {"kind", f.kind}, {"what", cli::clean(f.what)}});
  if (!x.quarantine.empty()) result["quarantine"] = x.quarantine;
  return result;
}

std::string next_step(const run_directory& run, const fsck_report& x) {
  if (x.has(finding_state::damage)) return "next: kernelmill fsck " + run.path + " --repair";
  if (std::any_of(x.findings.begin(), x.findings.end(),
                  [](const auto& f) { return f.kind == "store_gone"; }))
    return "next: " + command_for_lost_records(run);
  if (is_imported(run))
    return "what is lost comes back from a copy, or from another import: " +
           command_for_lost_records(run);
  return "what is lost comes back from a copy alone; the rest can be read, and `kernelmill "
         "resume " +
         run.path + "` goes on with episodes that are open";
}

expected<int> check(const invocation& in) {
  auto run = find_run(in.value("RUN"), in.value("--root"), true);
  KM_TRY(run);
  cli::show_activity("reading all that is stored");
  auto found = check_run(*run, in.has("--repair"));
  KM_TRY(found);
  bool sound = !found->has(finding_state::damage) && !found->has(finding_state::lost);
  int code = sound ? cli::exit_ok : cli::exit_quality;
  if (in.json) {
    cli::print_json(document_of(*run, *found, sound));
    return code;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& f : found->findings)
    rows.push_back({to_string(f.state), f.kind, cli::clean(f.what)});
  if (!rows.empty()) cli::print(cli::format_table({"STATE", "KIND", "WHAT"}, rows) + "\n");
  cli::print(fmt::format("{}: {}, {}, {}, {} of journals read\n", sound ? "sound" : "not sound",
                         counted(found->records, "record"), counted(found->turns, "turn"),
                         counted(found->artifacts, "artifact"), counted(found->lines, "line")));
  if (!found->quarantine.empty()) cli::talk("what was replaced is in " + found->quarantine);
  if (!sound) cli::talk(next_step(*run, *found));
  return code;
}

} // namespace

cli::command fsck_row() {
  return {"fsck",
          "Checks a run's stored data, and repairs what it can.",
          "kernelmill fsck runs/first\nkernelmill fsck runs/first --repair",
          "Reads every record, the index, the artifacts and both journals. States: `damage` can be "
          "repaired,\n"
          "`repaired` was, `lost` cannot be restored, `note` is no error. --repair\n"
          "rebuilds the store from its whole records, journals from the store, and artifacts "
          "from traces.jsonl;\n"
          "what it replaces goes to the folder `quarantine` first.\n"
          "Exit codes: 0 when everything is sound or was repaired, 5 when something is damaged or "
          "lost, 4 when a\n"
          "process writes the store.",
          {{"RUN", "Name of a run, or its directory.", true, false, completes::run, {}}},
          {flag("--repair", "Repairs what it can."), runs_root()},
          check};
}

} // namespace kernelmill::commands
