#include "storage/export/contamination.hpp"

#include <string_view>

namespace kernelmill::exports {

namespace {

// The title that retrieval/search/index.cpp gives a kernel, behind the mark of actors/episode.
constexpr std::string_view kernel_heading = "### Verified kernel for ";

/// The end of the line that begins at `from`, its line break included.
size_t line_end(std::string_view text, size_t from) {
  auto at = text.find('\n', from);
  return at == text.npos ? text.size() : at + 1;
}

} // namespace

std::vector<std::string> example_kernels(const std::string& prompt) {
  std::vector<std::string> result;
  std::string_view text{prompt};
  for (auto at = text.find(kernel_heading); at != text.npos; at = text.find(kernel_heading, at)) {
    bool begins_line = at == 0 || text[at - 1] == '\n';
    at = line_end(text, at);
    auto marks = text.find_first_not_of('`', at);
    if (!begins_line || marks == text.npos || marks - at < 3) continue;
    // A fence is closed by as many marks as opened it.
    auto closing = "\n" + std::string(text.substr(at, marks - at)) + "\n";
    auto begin = line_end(text, at);
    auto end = text.find(closing, begin == 0 ? 0 : begin - 1);
    if (end == text.npos) break;
    if (end > begin) result.emplace_back(text.substr(begin, end - begin));
    at = end + closing.size();
  }
  return result;
}

} // namespace kernelmill::exports
