#include "launch/commands/view/call_text.hpp"

#include <fmt/format.h>

#include "launch/analysis/watch/candidates.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

std::string block(const std::string& title, const std::string& text, bool colour) {
  if (text.empty()) return {};
  return "\n" + cli::paint(colour, cli::colour::bold, "--- " + title + " ---") + "\n" + text +
         (text.ends_with("\n") ? "" : "\n");
}

std::string way_cell(const nlohmann::ordered_json& x) {
  auto from = cell(x, "input"), to = cell(x, "output");
  return from == to ? from : from + " > " + to;
}

} // namespace

std::string stored_text(const expected<std::string>& text) {
  return text ? cli::clean(*text) : "(" + text.error().message + ")";
}

std::string calls_table(wire::TurnRecord::Reader turn, const artifact_store& artifacts) {
  std::vector<std::vector<std::string>> rows;
  for (auto call : turn.getCalls()) {
    auto x = watch::call_json(call, stored_text(artifacts.text(call.getObservation())));
    rows.push_back({fmt::to_string(rows.size()), cell(x, "tool"), cell(x, "status"),
                    cell(x, "transition"), way_cell(x), count_cell(x, "steps"),
                    number_cell(x, "gpu_seconds"), one_line(x.value("first_line", ""), 80)});
  }
  if (rows.empty()) return {};
  return cli::format_table({"CALL>", "TOOL", "STATUS", "TRANSITION", "CANDIDATE", "STEPS>",
                            "GPU SECONDS>", "OBSERVATION"},
                           rows);
}

std::string call_text(wire::CallRecord::Reader call, const artifact_store& artifacts, bool colour) {
  auto observation = stored_text(artifacts.text(call.getObservation()));
  auto x = watch::call_json(call, observation);
  auto result =
      cli::paint(colour, cli::colour::bold, cell(x, "tool")) +
      fmt::format("  {}, {}, candidate {}, {} steps, {} GPU seconds, {} s{}\n", cell(x, "status"),
                  cell(x, "transition"), way_cell(x), count_cell(x, "steps"),
                  number_cell(x, "gpu_seconds"), number_cell(x, "seconds"),
                  call.getHidden() ? ", tells of hidden cases" : "");
  result += block("arguments", stored_text(artifacts.text(call.getArguments())), colour);
  return result + block("observation", observation, colour);
}

std::string tool_end_text(wire::EpisodeRecord::Reader end) {
  if (end.getTerminalState().size() == 0) return {};
  return fmt::format("{} after {} steps and {:.1f} GPU seconds\n",
                     cli::clean(end.getTerminalState().cStr()), end.getSteps(),
                     end.getGpuSeconds());
}

} // namespace kernelmill::commands
