#include "gpu/program/program_reports.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view time_mark = "COMPUTE_EVAL_TIME_MS:";
constexpr double longest_time_ms = 3'600'000;
constexpr size_t most_lines = 4096;

std::string_view take_word(std::string_view& rest) {
  auto end = rest.find(' ');
  auto word = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return word;
}

uint64_t take_number(std::string_view& rest) {
  auto word = take_word(rest);
  uint64_t result = 0;
  std::from_chars(word.data(), word.data() + word.size(), result);
  return result;
}

void add_times(std::string_view rest, std::optional<program_times>& into) {
  auto& x = into ? *into : into.emplace();
  auto seconds = [&] { return static_cast<double>(take_number(rest)) * 1e-9; };
  x.kernel_seconds += seconds();
  x.kernels += take_number(rest);
  x.other_seconds += seconds();
  x.range_kernel_seconds += seconds();
  x.range_kernels += take_number(rest);
  x.range_wall_seconds += seconds();
  x.ranges += take_number(rest);
}

} // namespace

program_reports read_reports(std::string_view text, std::string_view secret) {
  program_reports result;
  std::map<std::string, std::string, std::less<>> names; // of processes, by number
  for (size_t i = 0; i < most_lines && !text.empty(); ++i) {
    auto line = next_line(text);
    if (take_word(line) != secret) continue;
    std::string process{take_word(line)};
    auto kind = take_word(line);
    if (kind == "begin") {
      names[process] = line;
      continue;
    }
    auto name = names[process];
    if (kind == "end") result.endings.push_back(name + " " + std::string{line});
    if (kind == "replaced") result.replaced.push_back(name + " defines " + std::string{line});
    if (kind == "problem") result.problems.emplace_back(line);
    if (kind == "times") add_times(line, result.times);
  }
  std::sort(result.endings.begin(), result.endings.end());
  std::sort(result.replaced.begin(), result.replaced.end());
  result.replaced.erase(std::unique(result.replaced.begin(), result.replaced.end()),
                        result.replaced.end());
  return result;
}

std::optional<std::string> first_missing(const std::vector<std::string>& wanted,
                                         const std::vector<std::string>& found) {
  auto left = found;
  for (const auto& x : wanted) {
    auto at = std::find(left.begin(), left.end(), x);
    if (at == left.end()) return x;
    left.erase(at);
  }
  return std::nullopt;
}

std::optional<double> printed_seconds(std::string_view text) {
  auto at = text.rfind(time_mark);
  if (at == text.npos) return std::nullopt;
  auto line = text.substr(at + time_mark.size());
  auto words = trimmed(line.substr(0, line.find('\n')));
  double ms = 0;
  auto [end, problem] = std::from_chars(words.data(), words.data() + words.size(), ms);
  bool whole = problem == std::errc{} && end == words.data() + words.size();
  if (!whole || !std::isfinite(ms) || ms <= 0 || ms > longest_time_ms) return std::nullopt;
  return ms * 1e-3;
}

} // namespace kernelmill
