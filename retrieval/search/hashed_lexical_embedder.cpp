#include "retrieval/search/hashed_lexical_embedder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

// Longer texts are cut: the words that tell a kernel's subject stand near its top.
constexpr size_t max_embedded_bytes = 64 << 10;
constexpr size_t max_word_bytes = 48; // longer runs are data, e.g. base64 or hex tables

constexpr float part_weight = 0.7F;
constexpr float spelling_weight = 0.7F;

// One hash seed for each kind of feature: the word "sum" and the part "sum" are one feature, the
// spelling "sum" is another.
enum feature_kind : uint64_t { word_or_part = 1, spelling = 2 };

// Sorted; see the assertion below.
constexpr std::array<std::string_view, 84> stop_words = {
    "about", "above", "after", "all",  "also", "an",     "and",   "any",     "are",   "as",
    "at",    "be",    "been",  "but",  "by",   "can",    "do",    "does",    "each",  "every",
    "for",   "from",  "has",   "have", "how",  "if",     "in",    "instead", "into",  "is",
    "it",    "its",   "just",  "like", "made", "make",   "many",  "may",     "more",  "most",
    "much",  "must",  "no",    "not",  "of",   "often",  "on",    "one",     "only",  "or",
    "other", "our",   "out",   "over", "same", "should", "so",    "some",    "such",  "than",
    "that",  "the",   "their", "them", "then", "there",  "these", "they",    "this",  "those",
    "to",    "too",   "up",    "use",  "used", "was",    "what",  "when",    "which", "while",
    "will",  "with",  "you",   "your"};
static_assert(std::is_sorted(stop_words.begin(), stop_words.end()));

struct occurrence {
  uint64_t hash;
  float weight;
  uint32_t times;
};
using occurrences = std::vector<occurrence>;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_byte(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

void count(occurrences& features, feature_kind kind, std::string_view x, float weight,
           uint32_t times) {
  features.push_back({XXH3_64bits_withSeed(x.data(), x.size(), kind), weight, times});
}

/// Says whether a new part begins at `i`: after "_", where the case rises, between letter and
/// digit.
bool is_part_border(std::string_view word, size_t i) {
  char before = word[i - 1], here = word[i];
  if (before == '_' || here == '_') return true;
  if (is_digit(before) != is_digit(here)) return true;
  return is_upper(here) && !is_upper(before);
}

void count_parts(occurrences& features, std::string_view word, uint32_t times) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0, i = 1; i <= word.size(); ++i) {
    if (i < word.size() && !is_part_border(word, i)) continue;
    auto part = word.substr(begin, i - begin);
    if (part.size() > 1 && part.front() != '_') parts.push_back(part);
    begin = i;
  }
  if (parts.size() == 1 && parts.front().size() == word.size()) return;
  for (auto part : parts) count(features, word_or_part, lowered(part), part_weight, times);
}

void count_spellings(occurrences& features, const std::string& word, uint32_t times) {
  auto framed = '^' + word + '$';
  size_t grams = 0;
  for (size_t n = 3; n <= 5; ++n)
    if (framed.size() >= n) grams += framed.size() - n + 1;
  if (grams == 0) return;
  auto weight = spelling_weight / std::sqrt(static_cast<float>(grams));
  for (size_t n = 3; n <= 5; ++n)
    for (size_t i = 0; i + n <= framed.size(); ++i)
      count(features, spelling, std::string_view{framed}.substr(i, n), weight, times);
}

void count_word(occurrences& features, std::string_view word, uint32_t times) {
  if (word.size() < 2 || word.size() > max_word_bytes || is_digit(word.front())) return;
  auto folded = lowered(word);
  if (std::binary_search(stop_words.begin(), stop_words.end(), std::string_view{folded})) return;
  count(features, word_or_part, folded, 1, times);
  count_parts(features, word, times);
  count_spellings(features, folded, times);
}

/// Sorted by hash, so that sums round the same way everywhere; of one hash the heaviest is first.
occurrences features_of(std::string_view text) {
  // Code repeats its words: each is taken apart once.
  std::unordered_map<std::string_view, uint32_t> words;
  for (size_t i = 0; i < text.size();) {
    if (!is_word_byte(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word_byte(text[end])) ++end;
    ++words[text.substr(i, end - i)];
    i = end;
  }
  occurrences features;
  for (const auto& [word, times] : words) count_word(features, word, times);
  std::sort(features.begin(), features.end(), [](const occurrence& a, const occurrence& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.weight > b.weight;
  });
  return features;
}

void add_features(std::string_view text, std::vector<double>& sums) {
  auto features = features_of(text);
  for (size_t i = 0, end = 0; i < features.size(); i = end) {
    uint64_t times = 0;
    for (; end < features.size() && features[end].hash == features[i].hash; ++end)
      times += features[end].times;
    auto value = features[i].weight * (1 + std::log(static_cast<double>(times)));
    // The low bit is the sign: features that share a coordinate cancel as often as they add up.
    auto hash = features[i].hash;
    sums[(hash >> 1) % sums.size()] += (hash & 1) != 0 ? value : -value;
  }
}

} // namespace

void normalize(float* row, size_t dimension) {
  double sum = 0;
  for (size_t i = 0; i < dimension; ++i) sum += double{row[i]} * row[i];
  if (sum <= 0) return;
  auto scale = 1 / std::sqrt(sum);
  for (size_t i = 0; i < dimension; ++i) row[i] = static_cast<float>(row[i] * scale);
}

std::string hashed_lexical_embedder::identity() const {
  return fmt::format("hashed-lexical/1 dim={}", dimension_);
}

expected<std::vector<float>> hashed_lexical_embedder::embed(const std::vector<std::string>& texts) {
  std::vector<float> rows(texts.size() * dimension_, 0.0F);
  std::vector<double> sums(dimension_);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    add_features(utf8_prefix(texts[i], max_embedded_bytes), sums);
    auto* row = rows.data() + i * dimension_;
    std::transform(sums.begin(), sums.end(), row, [](double x) { return static_cast<float>(x); });
    normalize(row, dimension_);
  }
  return rows;
}

} // namespace kernelmill
