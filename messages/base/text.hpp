#pragma once

// What every floor does with texts.

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// Without the blanks at both ends.
constexpr std::string_view trimmed(std::string_view x,
                                   std::string_view blanks = " \t\r\n") noexcept {
  auto first = x.find_first_not_of(blanks);
  if (first == x.npos) return {};
  return x.substr(first, x.find_last_not_of(blanks) - first + 1);
}

/// The same of a text that is about to go.
template <std::same_as<std::string> T>
std::string trimmed(T&& x, std::string_view blanks = " \t\r\n") {
  return std::string{trimmed(std::string_view{x}, blanks)};
}

/// ASCII letters become small; other bytes stay, whatever the locale.
inline std::string lowered(std::string_view x) {
  std::string result{x};
  for (auto& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// Takes one line off `rest` and returns it without its end.
constexpr std::string_view next_line(std::string_view& rest) noexcept {
  auto end = rest.find('\n');
  auto line = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return line;
}

/// The words of a list in one line.
template <class Words>
std::string joined(const Words& words, std::string_view between = ", ") {
  std::string result;
  bool first = true;
  for (const auto& word : words) {
    if (!first) result += between;
    result += word;
    first = false;
  }
  return result;
}

/// What stands between the marks, also where that is nothing: one part more than there are marks.
inline std::vector<std::string> split(std::string_view x, char mark) {
  std::vector<std::string> result;
  for (auto end = x.find(mark); end != x.npos; end = x.find(mark)) {
    result.emplace_back(x.substr(0, end));
    x.remove_prefix(end + 1);
  }
  result.emplace_back(x);
  return result;
}

/// What may stand between two quotes of C++, of DOT and of the metrics' text format.
inline std::string escaped(std::string_view x) {
  std::string result;
  for (char c : x) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

} // namespace kernelmill
