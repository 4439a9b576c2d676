#include "launch/commands/judge/tool_reports.hpp"

#include <fmt/format.h>

#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

} // namespace

// -- cards ----------------------------------------------------------------------------------------

json values_json(const metric_values& x) {
  json result = json::object();
  for (const auto& row : metric_table())
    if (auto value = x[row.id]) result[std::string{row.name}] = *value;
  return result;
}

namespace {

json lines_json(const std::vector<finding_line>& lines) {
  auto result = json::array();
  for (const auto& x : lines)
    result.push_back({{"line", x.line},
                      {"instructions", x.instructions},
                      {"what", x.what},
                      {"source", cli::clean(x.source)}});
  return result;
}

} // namespace

json cards_json(const std::vector<bottleneck_finding>& cards) {
  auto result = json::array();
  for (const auto& x : cards)
    result.push_back({{"bottleneck", x.kind},
                      {"confidence", x.confidence},
                      {"evidence", x.evidence},
                      {"lines", lines_json(x.lines)},
                      {"causes", x.causes},
                      {"next_action", x.action}});
  return result;
}

std::string card_text(const std::vector<bottleneck_finding>& cards) {
  auto result =
      fmt::format("  limited by {} (confidence {:.2g})\n", cards[0].kind, cards[0].confidence);
  for (const auto& line : lines_of(cards)) result += "  " + cli::clean(line) + "\n";
  return result + fmt::format("  try: {}\n", cards[0].action);
}

// -- ncu ------------------------------------------------------------------------------------------

namespace {

json kernels_json(const std::vector<carded_kernel>& kernels, const device_roof& roof) {
  auto result = json::array();
  for (const auto& x : kernels)
    result.push_back(
        {{"kernel", cli::clean(x.kernel.metrics.kernel)},
         {"launch", x.kernel.launch},
         {"metrics", values_json(x.kernel.metrics.values)},
         {"missing", x.kernel.missing},
         {"roofline", roofline_json(position_of(counted_work(x.kernel.metrics.values), roof))},
         {"cards", cards_json(x.cards)}});
  return result;
}

} // namespace

json roofline_json(const roofline_position& x) {
  json result = json::object();
  if (x.empty()) return result;
  for (const auto& one : quantities_of(x))
    result[std::string{one.name}] = {{"value", one.value}, {"unit", one.unit}};
  return result;
}

std::vector<carded_kernel> carded(const ncu_report& report) {
  std::vector<carded_kernel> result;
  for (const auto& x : report.kernels) result.push_back({x, read_cards(x.metrics.values)});
  return result;
}

bool wants_lines(const std::vector<carded_kernel>& kernels) {
  for (const auto& x : kernels)
    for (const auto& card : x.cards)
      if (!instructions_of(card.kind).empty()) return true;
  return false;
}

void add_lines(const std::vector<listed_text>& texts, std::vector<carded_kernel>& kernels) {
  for (auto& x : kernels) kernelmill::add_lines(texts, x.kernel.metrics.kernel, x.cards);
}

json ncu_document(const ncu_report& report, const std::vector<carded_kernel>& kernels,
                  const device_roof& roof) {
  return {{"tool", "ncu"},
          {"problem", to_string(report.problem)},
          {"words", cli::clean(report.words)},
          {"kernels", kernels_json(kernels, roof)}};
}

std::string ncu_text(const std::vector<carded_kernel>& kernels, bool colour) {
  std::string result;
  for (const auto& x : kernels) {
    const auto& cards = x.cards;
    auto time = x.kernel.metrics.values[metric::time];
    result += cli::paint(colour, cli::colour::bold, cli::clean(x.kernel.metrics.kernel)) +
              (time ? fmt::format("  {:.4g} us", *time) : std::string{}) + "\n";
    if (cards.empty()) {
      result += "  no card: the report lacks what the rules read\n";
      continue;
    }
    result += card_text(cards);
  }
  return result;
}

const char* hint_of(ncu_problem x) {
  switch (x) {
    case ncu_problem::no_permission:
      return "let all users read GPU counters (NVreg_RestrictProfilingToAdminUsers=0), or run ncu "
             "as root";
    case ncu_problem::unknown_metric:
      return "give `profile command` what `ncu --query-metrics` lists: --known FILE";
    case ncu_problem::no_kernels: return "is the program's kernel launched, and named as asked?";
    case ncu_problem::no_profiler: return "counters cannot be read on this machine";
    default: return "write the report with the command that `kernelmill profile command` prints";
  }
}

// -- compute-sanitizer ----------------------------------------------------------------------------

namespace {

json place_json(const code_place& x) {
  return {{"kernel", cli::clean(x.kernel)},
          {"file", cli::clean(x.file)},
          {"line", x.line},
          {"offset", cli::clean(x.offset)}};
}

json findings_json(const sanitizer_report& report) {
  auto result = json::array();
  for (const auto& x : report.findings) {
    auto others = json::array();
    for (const auto& other : x.others) others.push_back(place_json(other));
    result.push_back({{"family", to_string(x.family)},
                      {"severity", x.is_warning ? "warning" : "error"},
                      {"words", cli::clean(x.words)},
                      {"space", x.space},
                      {"access", x.access},
                      {"bytes", x.bytes},
                      {"at", place_json(x.at)},
                      {"others", std::move(others)},
                      {"thread", cli::clean(x.thread)},
                      {"block", cli::clean(x.block)},
                      {"address", cli::clean(x.address)},
                      {"hazards", x.hazards},
                      {"times", x.times},
                      {"hint", x.hint}});
  }
  return result;
}

std::string place_text(const code_place& x) {
  auto result = x.kernel;
  if (x.line > 0)
    result += fmt::format(" at {}:{}", x.file, x.line);
  else if (!x.offset.empty())
    result += " at " + x.offset;
  return cli::clean(result);
}

} // namespace

json sanitizer_document(const sanitizer_report& report) {
  return {{"tool", "compute-sanitizer"},
          {"problem", report.problem == sanitizer_problem::none            ? "none"
                      : report.problem == sanitizer_problem::not_supported ? "not_supported"
                                                                           : "no_report"},
          {"words", cli::clean(report.words)},
          {"errors", report.errors},
          {"warnings", report.warnings},
          {"findings", findings_json(report)}};
}

bool found_nothing(const sanitizer_report& report) {
  return report.findings.empty() && report.errors == 0 && report.problem == sanitizer_problem::none;
}

std::string sanitizer_text(const sanitizer_report& report) {
  std::string result;
  for (const auto& x : report.findings) {
    result += fmt::format("{} {}: {}\n  in {}\n", x.is_warning ? "warning" : "error",
                          to_string(x.family), cli::clean(x.words), place_text(x.at));
    for (const auto& other : x.others) result += "  and " + place_text(other) + "\n";
    result += "  " + x.hint + "\n";
  }
  return found_nothing(report) ? "nothing was found\n" : result;
}

} // namespace kernelmill::commands
