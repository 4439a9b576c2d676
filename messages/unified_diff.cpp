#include "messages/unified_diff.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "messages/base/lines.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_path = 255;
constexpr std::string_view no_file = "/dev/null";

tl::unexpected<error> bad(size_t line, const std::string& why) {
  return policy_error("bad_patch",
                      "failed to read the diff: line " + std::to_string(line) + " " + why);
}

// "a/kernel.cu\t2026-11-29" without the time.
std::string_view name_in(std::string_view line) {
  line.remove_prefix(4); // "--- " and "+++ "
  auto end = std::min(line.find('\t'), line.find_last_not_of("\r\n") + 1);
  return trimmed(line.substr(0, end));
}

bool is_safe(std::string_view path) {
  if (path.empty() || path.size() > most_path || path.front() == '/') return false;
  for (const auto& part : split(path, '/'))
    if (part.empty() || part == "." || part == ".." || lowered(part) == ".git") return false;
  return std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return c > 0x20 && c != 0x7f && c != '\\' && c != '"';
  });
}

std::string_view without_side(std::string_view name, std::string_view side) {
  return name.starts_with(side) ? name.substr(side.size()) : name;
}

std::optional<size_t> number_at(std::string_view& text) {
  size_t result = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return result;
}

// "@@ -12,5 +12,6 @@ name": where the hunk begins, before and after.
std::optional<diff_hunk> read_range(std::string_view line) {
  diff_hunk result;
  for (auto [mark, into] : {std::pair{" -", &result.old_begin}, {" +", &result.new_begin}}) {
    auto at = line.find(mark);
    if (at == line.npos) return std::nullopt;
    line.remove_prefix(at + 2);
    auto found = number_at(line);
    if (!found) return std::nullopt;
    *into = *found;
  }
  return line.find(" @@") != line.npos ? std::optional{result} : std::nullopt;
}

class diff_reader {
public:
  explicit diff_reader(std::string_view text) : lines_(lines_of(text)) {
    while (!lines_.empty() && trimmed(lines_.back()).empty()) lines_.pop_back();
  }

  expected<std::vector<file_diff>> run() {
    while (at_ < lines_.size()) {
      if (is_file_head()) {
        KM_TRY(read_file_head());
      } else if (starts("@@ ")) {
        if (files_.empty()) return bad(at_ + 1, "is a hunk of no file: write --- and +++ before");
        KM_TRY(read_hunk());
      } else if (is_refused()) {
        return bad(at_ + 1, "asks for more than a change of lines");
      } else if (starts("diff ") || starts("index ") || starts("new file ") ||
                 starts("deleted file ") || trimmed(lines_[at_]).empty()) {
        ++at_;
      } else {
        return bad(at_ + 1, "is no part of a diff");
      }
    }
    for (const auto& x : files_)
      if (x.hunks.empty()) return bad(lines_.size(), "ends a file without a hunk: " + x.path);
    if (files_.empty()) return bad(1, "begins no diff: write --- and +++ first");
    return std::move(files_);
  }

private:
  bool starts(std::string_view with, size_t ahead = 0) const {
    return at_ + ahead < lines_.size() && lines_[at_ + ahead].starts_with(with);
  }
  bool is_file_head() const { return starts("--- ") && starts("+++ ", 1); }
  bool is_refused() const {
    for (const char* word : {"rename ", "copy ", "old mode ", "new mode ", "similarity ",
                             "dissimilarity ", "GIT binary ", "Binary files "})
      if (starts(word)) return true;
    return false;
  }

  expected<void> read_file_head() {
    auto before = name_in(lines_[at_]);
    auto after = name_in(lines_[at_ + 1]);
    file_diff result;
    if (before == no_file && after == no_file) return bad(at_ + 1, "names no file");
    result.change = before == no_file  ? file_change::create
                    : after == no_file ? file_change::remove
                                       : file_change::modify;
    auto old_path = without_side(before, "a/");
    auto new_path = without_side(after, "b/");
    if (result.change == file_change::modify && old_path != new_path)
      return bad(at_ + 1, "renames a file, which is not taken");
    result.path = result.change == file_change::remove ? old_path : new_path;
    if (!is_safe(result.path)) return bad(at_ + 1, "has a path that is not taken");
    for (const auto& x : files_)
      if (x.path == result.path) return bad(at_ + 1, "changes a file a second time");
    files_.push_back(std::move(result));
    at_ += 2;
    return {};
  }

  expected<void> read_hunk() {
    auto begin = at_;
    auto hunk = read_range(lines_[at_]);
    if (!hunk) return bad(at_ + 1, "has no ranges: write @@ -LINE,COUNT +LINE,COUNT @@");
    bool changes = false;
    for (++at_; at_ < lines_.size() && !starts("@@ ") && !starts("diff ") && !is_file_head();
         ++at_) {
      auto line = lines_[at_];
      if (line.front() == '\\') {
        if (hunk->lines.empty()) return bad(at_ + 1, "follows no line");
        if (auto& text = hunk->lines.back().text; text.ends_with('\n')) text.pop_back();
        continue;
      }
      bool is_blank = trimmed(line).empty() && line.front() != ' '; // editors take the space away
      if (!is_blank && std::string_view{" -+"}.find(line.front()) == std::string_view::npos)
        return bad(at_ + 1, "begins with none of blank, - and +");
      auto text = with_newline(is_blank ? line : line.substr(1));
      if (!text.ends_with('\n')) text += '\n'; // the diff itself ends without
      hunk->lines.push_back({is_blank ? ' ' : line.front(), std::move(text)});
      changes = changes || hunk->lines.back().kind != ' ';
    }
    if (!changes) return bad(begin + 1, "begins a hunk that changes nothing");
    files_.back().hunks.push_back(std::move(*hunk));
    return {};
  }

  std::vector<std::string_view> lines_;
  size_t at_ = 0;
  std::vector<file_diff> files_;
};

// -- applying -----------------------------------------------------------------------------------

/// A text that hunks are applied to, one after the other. What one has written the next does not
/// match.
class patched_text {
public:
  explicit patched_text(std::string_view base) {
    for (auto x : lines_of(base)) lines_.push_back({std::string{x}, false});
  }

  bool apply(const diff_hunk& hunk) {
    std::vector<const std::string*> before;
    std::vector<line> after;
    for (const auto& x : hunk.lines) {
      if (x.kind != '+') before.push_back(&x.text);
      if (x.kind != '-') after.push_back({x.text, true});
    }
    bool at_begin = hunk.old_begin <= 1;
    bool at_end = hunk.lines.back().kind != ' ';
    auto at = find(before, hunk.new_begin > 0 ? hunk.new_begin - 1 : 0, at_begin, at_end);
    if (!at) return false;
    auto from = lines_.begin() + static_cast<std::ptrdiff_t>(*at);
    from = lines_.erase(from, from + static_cast<std::ptrdiff_t>(before.size()));
    lines_.insert(from, after.begin(), after.end());
    return true;
  }

  /// Whether a place was not found because the search for it was given up.
  bool gave_up() const { return compared_ > most_compared; }

  std::string text() const {
    std::string result;
    for (const auto& x : lines_) result += x.text;
    return result;
  }

private:
  struct line {
    std::string text;
    bool is_new = false;
  };

  bool matches(const std::vector<const std::string*>& before, size_t at) const {
    if (at + before.size() > lines_.size()) return false;
    for (size_t i = 0; i < before.size(); ++i) {
      if (gave_up() || ++compared_ > most_compared) return false;
      if (lines_[at + i].is_new || lines_[at + i].text != *before[i]) return false;
    }
    return true;
  }

  // Nearest to the line that was named; of two that are as near the later one.
  std::optional<size_t> find(const std::vector<const std::string*>& before, size_t wanted,
                             bool at_begin, bool at_end) const {
    auto fits = [&](size_t at) {
      return (!at_begin || at == 0) && (!at_end || at + before.size() == lines_.size()) &&
             matches(before, at);
    };
    if (at_begin)
      wanted = 0;
    else if (at_end)
      wanted = lines_.size() - std::min(lines_.size(), before.size());
    wanted = std::min(wanted, lines_.size());
    for (size_t away = 0; away <= lines_.size(); ++away) {
      if (wanted + away <= lines_.size() && fits(wanted + away)) return wanted + away;
      if (away > 0 && away <= wanted && fits(wanted - away)) return wanted - away;
    }
    return std::nullopt;
  }

  // A program of equal lines and a hunk of such fit almost everywhere.
  static constexpr size_t most_compared = 20'000'000;

  std::vector<line> lines_;
  mutable size_t compared_ = 0;
};

} // namespace

bool looks_like_diff(std::string_view text) {
  for (auto rest = text; !rest.empty();) {
    auto line = next_line(rest);
    if (line.starts_with("diff --git ") || (line.starts_with("--- ") && rest.starts_with("+++ ")))
      return true;
    if (!trimmed(line).empty()) return false;
  }
  return false;
}

expected<std::vector<file_diff>> parse_unified_diff(std::string_view text) {
  return diff_reader{text}.run();
}

expected<std::string> apply_diff(const file_diff& change, std::string_view base) {
  if (change.change == file_change::create && !base.empty())
    return policy_error("patch_failed", "failed to create " + change.path + ": it is there");
  patched_text result{base};
  for (size_t i = 0; i < change.hunks.size(); ++i) {
    if (result.apply(change.hunks[i])) continue;
    auto failed = "failed to apply hunk " + std::to_string(i + 1) + " of " + change.path;
    if (result.gave_up())
      return policy_error("patch_failed",
                          failed + ": its lines nearly fit at so many places that the search for "
                                   "the right one was given up",
                          "give lines around the change that stand in the program once");
    return policy_error("patch_failed",
                        failed + ": its context and the lines that it removes are not in the "
                                 "program as they stand there",
                        "copy these lines from the program, with their blanks");
  }
  auto text = result.text();
  if (change.change == file_change::remove && !text.empty())
    return policy_error("patch_failed",
                        "failed to delete " + change.path + ": the diff leaves lines of it");
  return text;
}

} // namespace kernelmill
