#include "actors/episode/patch/text_patch.hpp"
#include "messages/base/lines.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view search_mark = "<<<<<<< SEARCH";
constexpr std::string_view middle_mark = "=======";
constexpr std::string_view replace_mark = ">>>>>>> REPLACE";

bool is_mark(std::string_view line, std::string_view mark) {
  return trimmed(line) == mark;
}

struct block {
  std::string search;
  std::string replace;
};

tl::unexpected<error> bad(const std::string& why) {
  return policy_error("bad_patch", "failed to read the change: " + why,
                      "write <<<<<<< SEARCH, the lines, =======, the new lines, >>>>>>> REPLACE");
}

expected<std::vector<block>> read_blocks(std::string_view text) {
  enum class part : unsigned char { outside, search, replace } where = part::outside;
  std::vector<block> result;
  for (auto line : lines_of(text)) {
    if (where == part::outside) {
      if (is_mark(line, search_mark)) {
        result.emplace_back();
        where = part::search;
      } else if (!trimmed(line).empty()) {
        return bad("there is text between its blocks");
      }
    } else if (where == part::search) {
      if (is_mark(line, middle_mark))
        where = part::replace;
      else if (is_mark(line, search_mark) || is_mark(line, replace_mark))
        return bad("block " + std::to_string(result.size()) + " has no =======");
      else
        result.back().search += with_newline(line);
    } else if (is_mark(line, replace_mark)) {
      where = part::outside;
    } else if (is_mark(line, search_mark)) {
      return bad("block " + std::to_string(result.size()) + " has no >>>>>>> REPLACE");
    } else {
      result.back().replace += with_newline(line);
    }
  }
  if (where != part::outside) return bad("block " + std::to_string(result.size()) + " has no end");
  if (result.empty()) return bad("it has no block");
  return result;
}

// Whole lines only: a part of one is none.
std::vector<size_t> places_of(const std::string& lines, const std::string& in) {
  std::vector<size_t> result;
  for (size_t at = in.find(lines); at != in.npos; at = in.find(lines, at + 1))
    if (at == 0 || in[at - 1] == '\n') result.push_back(at);
  return result;
}

} // namespace

bool looks_like_search(std::string_view text) {
  while (!text.empty())
    if (is_mark(next_line(text), search_mark)) return true;
  return false;
}

expected<std::string> apply_search(std::string_view blocks, std::string_view base) {
  auto all = read_blocks(blocks);
  KM_TRY(all);
  std::string text{base};
  bool had_end = text.empty() || text.ends_with('\n');
  if (!had_end) text += '\n'; // the last line is found as any other
  for (size_t i = 0; i < all->size(); ++i) {
    const auto& [search, replace] = (*all)[i];
    auto fail = [&](const std::string& why, const std::string& hint) {
      return policy_error("patch_failed",
                          "failed to apply block " + std::to_string(i + 1) + ": " + why, hint);
    };
    if (search.empty())
      return fail("its SEARCH is empty", "name lines of the program that are there once");
    auto found = places_of(search, text);
    if (found.empty())
      return fail("the lines of its SEARCH are not in the program",
                  "copy them from the program, with their blanks");
    if (found.size() > 1)
      return fail("the lines of its SEARCH are there " + std::to_string(found.size()) + " times",
                  "name more lines around them");
    text.replace(found.front(), search.size(), replace);
  }
  if (!had_end && text.ends_with('\n')) text.pop_back();
  return text;
}

} // namespace kernelmill
