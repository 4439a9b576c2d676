#include "gpu/profiler/ncu_report.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "gpu/profiler/csv.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_kernels = 256;
constexpr size_t longest_kernel_text = 512;

// What to multiply by, for a report that was written without --print-units base.
double factor_of(std::string_view unit) {
  static constexpr std::pair<std::string_view, double> units[] = {
      {"us", 1e3},     {"usecond", 1e3}, {"ms", 1e6},    {"msecond", 1e6}, {"s", 1e9},
      {"second", 1e9}, {"Kbyte", 1e3},   {"Mbyte", 1e6}, {"Gbyte", 1e9},   {"Tbyte", 1e12},
      {"K", 1e3},      {"M", 1e6},       {"G", 1e9}};
  auto per = unit.find('/'); // "Kbyte/block"
  for (const auto& [name, factor] : units)
    if (unit.substr(0, per) == name) return factor;
  return 1;
}

struct columns {
  size_t id = SIZE_MAX;
  size_t kernel = SIZE_MAX;
  std::array<size_t, metric_count> of_metric;
};

size_t find(const csv_row& header, std::string_view name) {
  auto at = std::find(header.begin(), header.end(), name);
  return at == header.end() ? SIZE_MAX : static_cast<size_t>(at - header.begin());
}

columns columns_of(const csv_row& header) {
  columns result;
  result.id = find(header, "ID");
  result.kernel = find(header, "Kernel Name");
  for (const auto& row : metric_table()) {
    auto& at = result.of_metric[static_cast<size_t>(row.id)];
    at = SIZE_MAX;
    for (auto name : row.ncu)
      if (at == SIZE_MAX && !name.empty()) at = find(header, name);
  }
  return result;
}

ncu_kernel kernel_of(const csv_row& row, const csv_row& units, const columns& where) {
  ncu_kernel result;
  result.metrics.kernel = row[where.kernel].substr(0, longest_kernel_text);
  if (auto id = csv_number(row[where.id]); id && *id >= 0 && *id < 1e9)
    result.launch = static_cast<unsigned>(*id);
  for (const auto& x : metric_table()) {
    auto at = where.of_metric[static_cast<size_t>(x.id)];
    if (at >= row.size()) continue;
    if (auto value = csv_number(row[at]))
      result.metrics.values.set(x.id,
                                *value * (at < units.size() ? factor_of(units[at]) : 1) * x.scale);
    else
      result.missing.emplace_back(x.name);
  }
  return result;
}

bool has(std::string_view text, std::string_view words) {
  return text.find(words) != text.npos;
}

// Only lines that ncu marks as its own are read: the program prints to the same stdout. A program
// can print such a line too; what it gains is a profile that is missing.
ncu_problem problem_in(std::string_view line) {
  if (!line.starts_with("==ERROR==") && !line.starts_with("==WARNING==")) return ncu_problem::none;
  if (has(line, "ERR_NVGPUCTRPERM")) return ncu_problem::no_permission;
  if (has(line, "Failed to find metric") || has(line, "Unknown metric"))
    return ncu_problem::unknown_metric;
  if (has(line, "Failed to initialize the profiler") || has(line, "LibraryNotLoaded") ||
      has(line, "Profiling is not supported") || has(line, "not supported on this device"))
    return ncu_problem::no_profiler;
  if (has(line, "No kernels were profiled")) return ncu_problem::no_kernels;
  return ncu_problem::none;
}

bool is_header(std::string_view line) {
  return line.starts_with("\"ID\",") && has(line, "\"Kernel Name\"");
}

} // namespace

ncu_report read_ncu_report(std::string_view text) {
  ncu_report result;
  csv_row header, units;
  columns where;
  bool has_units = false;
  while (!text.empty()) {
    auto line = next_line(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto problem = problem_in(line); problem != ncu_problem::none) {
      // A warning that no kernel was profiled follows from what went wrong before.
      if (result.problem == ncu_problem::none) {
        result.problem = problem;
        result.words = std::string{line.substr(0, 400)};
      }
      continue;
    }
    if (header.empty()) {
      if (!is_header(line)) continue;
      header = csv_fields(line);
      where = columns_of(header);
      if (where.id == SIZE_MAX || where.kernel == SIZE_MAX) header.clear();
      continue;
    }
    if (!line.starts_with('"')) continue;
    auto row = csv_fields(line);
    if (row.size() != header.size()) continue;
    if (!has_units && row[where.id].empty() && row[where.kernel].empty()) {
      units = std::move(row);
      has_units = true;
      continue;
    }
    if (!csv_number(row[where.id]) || result.kernels.size() == most_kernels) continue;
    result.kernels.push_back(kernel_of(row, units, where));
  }
  if (!result.kernels.empty())
    result.problem = ncu_problem::none;
  else if (result.problem == ncu_problem::none)
    result.problem = header.empty() ? ncu_problem::no_report : ncu_problem::no_kernels;
  return result;
}

std::string_view to_string(ncu_problem x) {
  switch (x) {
    case ncu_problem::none: return "none";
    case ncu_problem::no_permission: return "no_permission";
    case ncu_problem::no_profiler: return "no_profiler";
    case ncu_problem::unknown_metric: return "unknown_metric";
    case ncu_problem::no_kernels: return "no_kernels";
    case ncu_problem::no_report: return "no_report";
  }
  return "none";
}

} // namespace kernelmill
