#include "retrieval/search/words.hpp"

#include <algorithm>
#include <array>

namespace kernelmill {

namespace {

// Sorted; see the assertion below.
constexpr std::array<std::string_view, 85> stop_words = {
    "about", "above", "after", "all",   "also", "an",    "and",    "any",     "are",  "as",
    "at",    "be",    "been",  "but",   "by",   "can",   "do",     "does",    "each", "every",
    "for",   "from",  "has",   "have",  "how",  "if",    "in",     "instead", "into", "is",
    "it",    "its",   "just",  "like",  "made", "make",  "many",   "may",     "more", "most",
    "much",  "must",  "no",    "not",   "of",   "often", "on",     "one",     "only", "or",
    "other", "our",   "out",   "over",  "same", "shape", "should", "so",      "some", "such",
    "than",  "that",  "the",   "their", "them", "then",  "there",  "these",   "they", "this",
    "those", "to",    "too",   "up",    "use",  "used",  "was",    "what",    "when", "which",
    "while", "will",  "with",  "you",   "your"};
static_assert(std::is_sorted(stop_words.begin(), stop_words.end()));

} // namespace

bool is_stop_word(std::string_view word) {
  return word.size() <= 7 && std::binary_search(stop_words.begin(), stop_words.end(), word);
}

} // namespace kernelmill
