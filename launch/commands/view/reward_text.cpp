#include "launch/commands/view/reward_text.hpp"

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::commands {

namespace {

// Without a sign before 0, which a penalty that is not due would have.
std::string amount(double x) {
  return fmt::format("{:.4g}", x + 0.0);
}

} // namespace

std::string parts_table(wire::Verdict::Reader verdict) {
  std::vector<std::vector<std::string>> rows;
  for (auto x : verdict.getComponents())
    if (x.getWeight() != 0 || x.getValue() != 0)
      rows.push_back({cli::clean(x.getName().cStr()), amount(x.getValue()), amount(x.getWeight()),
                      amount(x.getValue() * x.getWeight())});
  if (rows.empty()) return {};
  return cli::format_table({"PART", "VALUE>", "WEIGHT>", "EARNED>"}, rows);
}

nlohmann::ordered_json part_sums(const stored_episode& x) {
  auto result = nlohmann::ordered_json::object();
  for (const auto& record : x.turns) {
    auto opened = record.open();
    for (auto part : opened->getTurn().getVerdict().getComponents()) {
      auto& sum = result[part.getName().cStr()];
      sum = (sum.is_null() ? 0.0 : sum.get<double>()) + part.getValue() * part.getWeight();
    }
  }
  return result;
}

std::string part_sums_table(const stored_episode& x) {
  std::vector<std::vector<std::string>> rows;
  auto sums = part_sums(x);
  for (const auto& [name, sum] : sums.items())
    if (sum != 0.0) rows.push_back({cli::clean(name), amount(sum.get<double>())});
  if (rows.empty()) return {};
  return cli::format_table({"PART", "SUM>"}, rows);
}

} // namespace kernelmill::commands
