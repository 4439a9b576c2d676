#include "launch/commands/judge/torch_task_text.hpp"

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

json tolerance_json(const torch_tolerance& x) {
  json result = {{"absolute", x.absolute}, {"relative", x.relative}, {"matched", x.matched}};
  if (x.largest) result["largest"] = *x.largest;
  return result;
}

std::string tolerance_text(const torch_tolerance& x) {
  auto result = fmt::format("{} + {} |want|", x.absolute, x.relative);
  if (x.matched < 1) result += fmt::format(" for {:.4g} %", 100 * x.matched);
  if (x.largest) result += fmt::format(", at most {}", *x.largest);
  return result;
}

} // namespace

void add_torch_head(const torch_problem& x, json& result) {
  result["suite"] = x.suite;
  result["level"] = x.level;
  result["problem_id"] = x.problem_id;
  result["precision"] = x.precision;
  if (!x.mutates.empty()) result["mutates"] = x.mutates;
  if (const auto& entry = x.entry; entry.is_asked())
    result["entry"] = {{"function", entry.function},
                       {"takes", entry.as_tuple ? "tuple" : "arguments"}};
  if (x.tolerance) result["tolerance"] = tolerance_json(*x.tolerance);
  for (const auto& one : x.variants) {
    json variant{{"name", one.name},
                 {"constants", one.text()},
                 {"visibility", one.hidden ? "hidden" : "visible"},
                 {"timed", one.timed}};
    if (one.tolerance) variant["tolerance"] = tolerance_json(*one.tolerance);
    result["variants"].push_back(std::move(variant));
  }
}

std::string variants_text(const torch_problem& x) {
  std::vector<std::vector<std::string>> rows;
  bool own = false; // a tolerance
  for (const auto& one : x.variants) {
    rows.push_back({one.name, one.text(), one.hidden ? "hidden" : "visible",
                    one.timed ? "yes" : "no", one.tolerance ? tolerance_text(*one.tolerance) : ""});
    own = own || one.tolerance;
  }
  if (rows.empty()) return {};
  std::vector<std::string> heads{"VARIANT", "CONSTANTS", "SEEN BY THE POLICY", "TIMED",
                                 "TOLERANCE OF THE SUITE"};
  if (!own) {
    heads.pop_back();
    for (auto& row : rows) row.pop_back();
  }
  return "\n" + cli::format_table(heads, rows);
}

std::string suite_text(const torch_problem& x) {
  std::string result;
  if (x.entry.is_asked())
    result += fmt::format("answers may define {}({}) in place of ModelNew\n", x.entry.function,
                          x.entry.as_tuple ? "all inputs in a tuple" : "inputs");
  if (x.tolerance) result += "tolerance of its suite " + tolerance_text(*x.tolerance) + "\n";
  return result;
}

} // namespace kernelmill::commands
