#include "gpu/profiler/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kernelmill {

namespace {

constexpr size_t most_columns = 4096;

} // namespace

csv_row csv_fields(std::string_view line) {
  csv_row result;
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < line.size() && result.size() < most_columns; ++i) {
    char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      field += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      result.push_back(std::move(field));
      field.clear();
    } else {
      field += c;
    }
  }
  result.push_back(std::move(field));
  return result;
}

std::optional<double> csv_number(std::string_view text) {
  std::string digits{text};
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  double value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

} // namespace kernelmill
