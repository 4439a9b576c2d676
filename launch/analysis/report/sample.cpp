#include "launch/analysis/report/sample.hpp"

#include <charconv>
#include <string_view>

namespace kernelmill::reporting {

namespace {

/// The number that `text` begins with, if a character of `ends` or its end follows.
std::optional<uint32_t> leading_number(std::string_view text, std::string_view ends) {
  uint32_t x = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (code != std::errc{}) return std::nullopt;
  bool ended = end == text.data() + text.size() || ends.find(*end) != std::string_view::npos;
  return ended ? std::optional{x} : std::nullopt;
}

} // namespace

task_place place_of(const std::string& task) {
  constexpr std::string_view suite = "kernelbench/level";
  task_place result;
  result.group = task.substr(0, task.find('/'));
  std::string_view id = task;
  if (!id.starts_with(suite)) return result;
  auto slash = id.find('/', suite.size());
  if (slash == std::string_view::npos) return result;
  auto level = leading_number(id.substr(suite.size(), slash - suite.size()), "");
  if (!level) return result;
  result.group = "level " + std::to_string(*level);
  result.level = level;
  result.problem = leading_number(id.substr(slash + 1), "_");
  return result;
}

} // namespace kernelmill::reporting
