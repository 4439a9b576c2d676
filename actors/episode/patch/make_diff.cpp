#include "actors/episode/patch/make_diff.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace kernelmill {

namespace {

/// Lines that may be deleted and inserted before the search for the fewest is given up: it takes
/// memory with the square of them.
constexpr size_t most_changes = 2000;

/// Lines that may be compared before it: long texts of a few lines over and over take the product
/// of their length and their changes.
constexpr size_t most_comparisons = 20'000'000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    result.push_back(text.substr(0, end)); // its newline is part of a line, as in diff
    text.remove_prefix(end);
  }
  return result;
}

enum class edit : unsigned char { keep, remove, insert };

using lines = std::vector<std::string_view>;

/// Myers' greedy search: after d changes, the furthest line of `a` on each diagonal. `trace` keeps
/// what each d began with, so that the way can be walked back.
class shortest_edits {
public:
  shortest_edits(const lines& a, const lines& b) : a_(a), b_(b) {}

  std::vector<edit> find() {
    auto n = static_cast<long>(a_.size()), m = static_cast<long>(b_.size());
    auto most = std::min<long>(n + m, most_changes);
    std::vector<long> furthest(static_cast<size_t>(2 * most + 3), 0);
    auto at = [&](long k) -> long& { return furthest[static_cast<size_t>(k + most + 1)]; };
    std::vector<std::vector<long>> trace;
    size_t comparisons = 0;
    for (long d = 0; d <= most && comparisons < most_comparisons; ++d) {
      trace.emplace_back(furthest.begin() + (most + 1 - d - 1),
                         furthest.begin() + (most + 1 + d + 2));
      for (long k = -d; k <= d; k += 2) {
        bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
        long x = down ? at(k + 1) : at(k - 1) + 1;
        long y = x - k, begin = x;
        while (x < n && y < m && a_[static_cast<size_t>(x)] == b_[static_cast<size_t>(y)]) {
          ++x;
          ++y;
        }
        comparisons += static_cast<size_t>(x - begin) + 1;
        at(k) = x;
        if (x >= n && y >= m) return walk_back(trace, n, m);
      }
    }
    std::vector<edit> all(a_.size(), edit::remove);
    all.resize(a_.size() + b_.size(), edit::insert);
    return all;
  }

private:
  static std::vector<edit> walk_back(const std::vector<std::vector<long>>& trace, long x, long y) {
    std::vector<edit> result;
    for (auto d = static_cast<long>(trace.size()) - 1; d >= 0; --d) {
      const auto& row = trace[static_cast<size_t>(d)];
      auto at = [&](long k) { return row[static_cast<size_t>(k + d + 1)]; };
      long k = x - y;
      bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      long before_k = down ? k + 1 : k - 1;
      long before_x = d == 0 ? 0 : at(before_k);
      long before_y = d == 0 ? 0 : before_x - before_k;
      while (x > before_x && y > before_y) {
        result.push_back(edit::keep);
        --x;
        --y;
      }
      if (d == 0) break;
      result.push_back(down ? edit::insert : edit::remove);
      x = before_x;
      y = before_y;
    }
    std::reverse(result.begin(), result.end());
    return result;
  }

  const lines& a_;
  const lines& b_;
};

std::vector<edit> edits_of(const lines& a, const lines& b) {
  size_t front = 0, back = 0;
  while (front < a.size() && front < b.size() && a[front] == b[front]) ++front;
  while (back + front < a.size() && back + front < b.size() &&
         a[a.size() - 1 - back] == b[b.size() - 1 - back])
    ++back;
  auto middle = [&](const lines& x) {
    return lines(x.begin() + static_cast<std::ptrdiff_t>(front),
                 x.end() - static_cast<std::ptrdiff_t>(back));
  };
  auto middle_a = middle(a), middle_b = middle(b);
  std::vector<edit> result(front, edit::keep);
  auto found = shortest_edits{middle_a, middle_b}.find();
  result.insert(result.end(), found.begin(), found.end());
  result.resize(result.size() + back, edit::keep);
  return result;
}

void add_line(std::string& to, char sign, std::string_view line) {
  to += sign;
  to += line;
  if (!line.ends_with('\n')) to += "\n\\ No newline at end of file\n";
}

/// "3,2", as diff counts lines: from 1, and an empty side stands before its line.
std::string range(size_t start, size_t count) {
  if (count == 1) return std::to_string(start + 1);
  return fmt::format("{},{}", count == 0 ? start : start + 1, count);
}

} // namespace

std::string unified_diff(std::string_view a, std::string_view b, const std::string& name_of_a,
                         const std::string& name_of_b, size_t context) {
  if (a == b) return {};
  auto from = lines_of(a), to = lines_of(b);
  auto edits = edits_of(from, to);
  std::string result = "--- " + name_of_a + "\n+++ " + name_of_b + "\n";
  auto is_change = [](edit e) { return e != edit::keep; };
  size_t i = 0, x = 0, y = 0; // position among edits, lines of a, lines of b
  for (;;) {
    auto found =
        std::find_if(edits.begin() + static_cast<std::ptrdiff_t>(i), edits.end(), is_change);
    if (found == edits.end()) break;
    auto last = static_cast<size_t>(found - edits.begin());
    auto skipped = last - i - std::min(last - i, context);
    i += skipped, x += skipped, y += skipped;
    for (auto j = last + 1; j < edits.size() && j - last <= 2 * context + 1; ++j)
      if (is_change(edits[j])) last = j;
    auto end = std::min(last + 1 + context, edits.size());
    std::string body;
    auto first_x = x, first_y = y;
    for (; i < end; ++i) {
      if (edits[i] == edit::insert)
        add_line(body, '+', to[y++]);
      else if (edits[i] == edit::remove)
        add_line(body, '-', from[x++]);
      else
        add_line(body, ' ', from[x++]), ++y;
    }
    result +=
        fmt::format("@@ -{} +{} @@\n", range(first_x, x - first_x), range(first_y, y - first_y));
    result += body;
  }
  return result;
}

std::string unified_diff(const std::string& before, const std::string& after,
                         const std::string& name) {
  auto diff = unified_diff(before, after, "a/" + name, "b/" + name, 3);
  return diff.empty() ? diff : "diff --git a/" + name + " b/" + name + "\n" + diff;
}

} // namespace kernelmill
