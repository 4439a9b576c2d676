#include "storage/export/contamination.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace kernelmill::exports {

namespace {

// The words of actors/episode/prompt_parts.cpp. In prompts of older runs a kernel stands right
// behind the title that retrieval/search/index.cpp gave it.
constexpr std::string_view title_mark = "### ", old_title = "### Verified kernel for ",
                           speed_words = "Speedup: ", reference_words = "What is computed:\n";

/// The end of the line that begins at `from`, its line break included.
size_t line_end(std::string_view text, size_t from) {
  auto at = text.find('\n', from);
  return at == text.npos ? text.size() : at + 1;
}

/// The block that begins at `at`, which moves behind it; nothing: there is none.
std::optional<std::string_view> read_block(std::string_view text, size_t& at) {
  auto marks = text.find_first_not_of('`', at);
  if (marks == text.npos || marks - at < 3) return std::nullopt;
  // A fence is closed by as many marks as opened it.
  auto closing = "\n" + std::string(text.substr(at, marks - at)) + "\n";
  auto begin = line_end(text, at);
  auto end = text.find(closing, begin - 1);
  at = end == text.npos ? text.size() : end + closing.size();
  if (end == text.npos) return std::nullopt;
  return text.substr(begin, end > begin ? end - begin : 0);
}

} // namespace

std::vector<std::string> example_kernels(const std::string& prompt) {
  std::vector<std::string> result;
  std::string_view text{prompt};
  auto is_at = [&](size_t at, std::string_view words) {
    return text.substr(at).starts_with(words);
  };
  for (size_t at = 0; (at = text.find(title_mark, at)) != text.npos;) {
    bool begins_line = at == 0 || text[at - 1] == '\n';
    bool is_kernel = is_at(at, old_title);
    at = line_end(text, at);
    if (is_at(at, speed_words)) {
      is_kernel = true;
      at = line_end(text, at);
    }
    if (!begins_line || !is_kernel) continue;
    if (is_at(at, reference_words)) {
      at += reference_words.size();
      (void)read_block(text, at);
      at = std::min(text.find("The kernel:\n", at), text.size());
      at = line_end(text, at);
    }
    if (auto code = read_block(text, at); code && !code->empty()) result.emplace_back(*code);
  }
  return result;
}

} // namespace kernelmill::exports
