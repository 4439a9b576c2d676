#include "actors/episode/fence.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr auto npos = std::string_view::npos;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// The run of ` or ~ that a line starts with, behind at most three spaces.
struct marker {
  char character = 0;
  size_t length = 0;
  std::string_view rest;
};

std::optional<marker> read_marker(std::string_view line) {
  size_t indent = 0;
  while (indent < 3 && indent < line.size() && line[indent] == ' ') ++indent;
  line.remove_prefix(indent);
  if (line.empty() || (line[0] != '`' && line[0] != '~')) return std::nullopt;
  marker result{line[0], 0, {}};
  while (result.length < line.size() && line[result.length] == line[0]) ++result.length;
  if (result.length < 3) return std::nullopt;
  result.rest = line.substr(result.length);
  return result;
}

bool all_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_blank);
}

std::string_view first_word(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  size_t end = 0;
  while (end < text.size() && !is_blank(text[end])) ++end;
  return text.substr(0, end);
}

size_t line_end(std::string_view text, size_t from) {
  return std::min(text.find('\n', from), text.size());
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 15> languages{{
    {"cpp", "cpp"},
    {"c++", "cpp"},
    {"cc", "cpp"},
    {"cxx", "cpp"},
    {"c", "cpp"},
    {"hpp", "cpp"},
    {"h", "cpp"},
    {"cu", "cuda"},
    {"cuda", "cuda"},
    {"hip", "hip"},
    {"py", "python"},
    {"python", "python"},
    {"python3", "python"},
    {"triton", "python"},
    {"cuda-cpp", "cuda"},
}};

} // namespace

std::optional<fence> next_fence(std::string_view text, size_t from) {
  std::optional<marker> open;
  fence result;
  size_t code_begin = 0;
  while (from < text.size()) {
    auto end = line_end(text, from);
    auto found = read_marker(text.substr(from, end - from));
    auto next = std::min(end + 1, text.size());
    if (found && !open) {
      // A second ` on the line makes it inline code, not a fence.
      if (found->character == '~' || found->rest.find('`') == npos) {
        open = found;
        result.info = first_word(found->rest);
        code_begin = next;
      }
    } else if (found && found->character == open->character && found->length >= open->length &&
               all_blank(found->rest)) {
      result.code = text.substr(code_begin, from - code_begin);
      result.end = next;
      return result;
    }
    from = next;
  }
  if (!open) return std::nullopt;
  result.code = text.substr(code_begin);
  result.end = text.size();
  result.closed = false;
  return result;
}

std::optional<fence> only_fence(std::string_view text) {
  auto open = read_marker(text.substr(0, line_end(text, 0)));
  if (!open) return std::nullopt;
  std::string_view mark = text.substr(0, open->length);
  if (text.size() < 2 * mark.size() || !text.ends_with(mark)) return std::nullopt;
  fence result;
  result.end = text.size();
  result.code = text.substr(mark.size(), text.size() - 2 * mark.size());
  auto first_line = line_end(result.code, 0);
  result.info = first_word(result.code.substr(0, first_line));
  if (first_line < result.code.size()) {
    result.code.remove_prefix(first_line + 1);
  } else if (is_code_language(result.info)) {
    auto behind = static_cast<size_t>(result.info.data() - result.code.data()) + result.info.size();
    result.code.remove_prefix(std::min(behind + 1, result.code.size()));
  } else {
    result.info = {}; // "```x = 1```": the first word is code
  }
  // Several blocks also start and end with a fence.
  if (result.code.find(mark) != npos) return std::nullopt;
  return result;
}

std::string language_of(std::string_view info) {
  auto word = lowered(info.substr(0, 16));
  for (auto [name, language] : languages)
    if (word == name) return std::string{language};
  return word;
}

bool is_code_language(std::string_view info) {
  auto word = lowered(info.substr(0, 16));
  return std::any_of(languages.begin(), languages.end(),
                     [&](const auto& x) { return x.first == word; });
}

std::string_view trim_lines(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  for (auto end = text.find('\n'); end != npos && all_blank(text.substr(0, end));
       end = text.find('\n'))
    text.remove_prefix(end + 1);
  return text;
}

} // namespace kernelmill
