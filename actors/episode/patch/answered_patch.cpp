// Changes as answers hold them.

#include "actors/episode/patch/text_patch.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view begin_mark = "<PATCH>", end_mark = "</PATCH>";

// A fence that models put around everything.
std::string_view without_fence(std::string_view x) {
  while (!x.empty() && (x.front() == '\n' || x.front() == '\r')) x.remove_prefix(1);
  if (!x.starts_with("```")) return x;
  auto first = x.find('\n');
  auto last = x.rfind("```");
  if (first == std::string_view::npos || last <= first) return x;
  return x.substr(first + 1, last - first - 1);
}

} // namespace

std::optional<std::string_view> patch_of_answer(std::string_view text) {
  // What a model thinks of a patch is none.
  if (auto thought = text.rfind("</think>"); thought != std::string_view::npos)
    text.remove_prefix(thought);
  auto begin = text.find(begin_mark);
  if (begin == std::string_view::npos) return std::nullopt;
  auto inner = text.substr(begin + begin_mark.size());
  auto end = inner.find(end_mark);
  if (end == std::string_view::npos || inner.find(begin_mark) != std::string_view::npos)
    return std::nullopt;
  return without_fence(inner.substr(0, end));
}

namespace {

expected<std::string> apply_either(std::string_view patch, std::string_view source) {
  if (looks_like_search(patch)) return apply_search(patch, source);
  auto files = parse_unified_diff(patch);
  KM_TRY(files);
  if (files->size() != 1 || files->front().change != file_change::modify)
    return policy_error("bad_patch",
                        "a candidate is one file: the diff is to change it, and no other");
  return apply_diff(files->front(), source);
}

} // namespace

// What a compiler would read and what is stored part at a NUL.
expected<std::string> apply_patch(std::string_view patch, std::string_view source) {
  if (patch.find('\0') != std::string_view::npos)
    return policy_error("bad_patch", "there is a NUL in the patch");
  auto made = apply_either(patch, source);
  if (made && made->empty()) return policy_error("patch_failed", "nothing is left of the program");
  return made;
}

} // namespace kernelmill
