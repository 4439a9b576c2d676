#include "actors/episode/same_text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/episode/patch/normalized.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_words = 4000; // of either: the comparison takes the product of both

constexpr std::array kept_words = {
    "if",       "else",   "for",   "while",  "return", "break", "continue", "def",
    "class",    "import", "from",  "with",   "not",    "and",   "or",       "in",
    "switch",   "case",   "float", "double", "int",    "long",  "const",    "void",
    "template", "struct", "auto",  "None",   "True",   "False", "half",     "unsigned"};

bool is_of_word(char c) {
  auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

struct text_word {
  std::string word; ///< "$" of a name that the text chose itself; tl.load is from elsewhere
  std::string name;
};

text_word read_word(std::string word, bool is_member) {
  bool is_number = word[0] >= '0' && word[0] <= '9';
  bool is_known = std::find(kept_words.begin(), kept_words.end(), word) != kept_words.end();
  if (is_number || is_known || is_member) return {std::move(word), {}};
  return {"$", std::move(word)};
}

std::vector<text_word> words_of_text(const std::string& text) {
  std::vector<text_word> result;
  for (size_t i = 0; i < text.size() && result.size() <= most_words;) {
    if (text[i] == ' ' || text[i] == '\n' || text[i] == '\t') {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_of_word(text[end])) ++end;
    if (end == i)
      result.push_back({std::string(1, text[end++]), {}});
    else
      result.push_back(read_word(text.substr(i, end - i), i > 0 && text[i - 1] == '.'));
    i = end;
  }
  return result;
}

using word_pairs = std::vector<std::pair<const text_word*, const text_word*>>;

// Of two lists the longest that is a part of both, in order.
word_pairs in_order(const std::vector<text_word>& x, const std::vector<text_word>& y) {
  enum step : uint8_t { both, first, second };
  std::vector<step> steps(x.size() * y.size());
  std::vector<unsigned> before(y.size() + 1), now(y.size() + 1);
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < y.size(); ++j) {
      auto& next = steps[i * y.size() + j];
      next = x[i].word == y[j].word ? both : before[j + 1] >= now[j] ? first : second;
      now[j + 1] = next == both ? before[j] + 1 : std::max(before[j + 1], now[j]);
    }
    std::swap(before, now);
  }
  word_pairs result;
  for (size_t i = x.size(), j = y.size(); i > 0 && j > 0;) {
    auto next = steps[(i - 1) * y.size() + j - 1];
    if (next == both) result.emplace_back(&x[i - 1], &y[j - 1]);
    i -= next != second;
    j -= next != first;
  }
  return result;
}

// How many of them are alike if each name of one text stands for one name of the other. Where a
// pair of loops changed places, names do not.
size_t alike_in(const word_pairs& pairs) {
  std::map<std::pair<std::string, std::string>, size_t> counts;
  for (const auto& [a, b] : pairs) ++counts[{a->name, b->name}];
  std::vector<std::pair<size_t, std::pair<std::string, std::string>>> most_first;
  for (const auto& [names, count] : counts) most_first.emplace_back(count, names);
  std::stable_sort(most_first.begin(), most_first.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::set<std::string> from, to;
  size_t result = 0;
  for (const auto& [count, names] : most_first) {
    bool is_name = !names.first.empty();
    if (is_name && (from.contains(names.first) || to.contains(names.second))) continue;
    from.insert(names.first);
    to.insert(names.second);
    result += count;
  }
  return result;
}

} // namespace

std::optional<double> text_in_common(std::string_view starter, std::string_view answer,
                                     bool python) {
  auto words = [&](std::string_view code) {
    return words_of_text(python ? normalized_python(code) : normalized_cpp(code));
  };
  auto x = words(starter);
  auto y = words(answer);
  if (x.size() > most_words || y.size() > most_words) return std::nullopt;
  if (x.empty()) return 1;
  // Of the starter alone: words that were added make no other program.
  return static_cast<double>(alike_in(in_order(x, y))) / static_cast<double>(x.size());
}

} // namespace kernelmill
