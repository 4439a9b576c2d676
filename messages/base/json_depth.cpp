#include "messages/base/json_depth.hpp"

namespace kernelmill {

namespace {

// The last byte of the comment that begins at `at`; `at` itself where none begins. Readers without
// comments stop there, so nothing behind it matters to them.
size_t end_of_comment(std::string_view text, size_t at) noexcept {
  auto opening = text.substr(at, 2);
  auto end = at;
  if (opening == "//") end = text.find_first_of("\r\n", at);
  if (opening == "/*") end = text.find("*/", at + 2);
  if (opening == "/*" && end != text.npos) ++end;
  return end == text.npos ? text.size() : end;
}

} // namespace

bool nests_deeper(std::string_view text, size_t most) noexcept {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"': quoted = !quoted; break;
      case '\\': i += quoted ? 1 : 0; break;
      case '/': i = quoted ? i : end_of_comment(text, i); break;
      case '[':
      case '{':
        if (!quoted && ++depth > most) return true;
        break;
      case ']':
      case '}':
        if (!quoted && depth > 0) --depth;
        break;
      default: break;
    }
  }
  return false;
}

} // namespace kernelmill
