#pragma once

// The words of a text as searches take them: runs of ASCII letters, digits and "_" that begin with
// no digit, in lower case, without those that carry no subject ("the", "with"). An identifier has
// parts: "row_sum" has "row" and "sum", "maxPool2d" has "max", "Pool" and "RMSNorm" "RMS", "Norm".

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill {

inline constexpr size_t max_word_bytes = 48; // longer runs are data, e.g. base64 or hex tables

/// Says whether `word`, in lower case, carries no subject.
bool is_stop_word(std::string_view word);

constexpr bool is_digit_byte(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_upper_byte(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || is_upper_byte(c) || is_digit_byte(c) || c == '_';
}

/// Calls `take` with each run of word bytes, as it is written.
template <class F>
void each_run(std::string_view text, F&& take) {
  for (size_t i = 0; i < text.size();) {
    if (!is_word_byte(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word_byte(text[end])) ++end;
    take(text.substr(i, end - i));
    i = end;
  }
}

/// Writes the run in lower case to `folded`. Says whether it is a word.
inline bool fold_word(std::string_view run, std::string& folded) {
  if (run.size() < 2 || run.size() > max_word_bytes || is_digit_byte(run.front())) return false;
  folded.assign(run);
  for (auto& c : folded)
    if (is_upper_byte(c)) c = static_cast<char>(c + ('a' - 'A'));
  return !is_stop_word(folded);
}

/// Calls `take` with the place and the size of each part of two bytes or more, if there are several
/// parts. A part begins after "_", where the case rises, and between letter and digit.
template <class F>
void each_part(std::string_view run, F&& take) {
  auto is_border = [&](size_t i) {
    char before = run[i - 1], here = run[i];
    if (before == '_' || here == '_') return true;
    if (is_digit_byte(before) != is_digit_byte(here)) return true;
    if (!is_upper_byte(here)) return false;
    // "RMSNorm" has "RMS" and "Norm".
    bool begins_a_word = i + 1 < run.size() && run[i + 1] >= 'a' && run[i + 1] <= 'z';
    return !is_upper_byte(before) || begins_a_word;
  };
  for (size_t begin = 0, i = 1; i <= run.size(); ++i) {
    if (i < run.size() && !is_border(i)) continue;
    auto size = i - begin;
    if (size > 1 && size < run.size() && run[begin] != '_') take(begin, size);
    begin = i;
  }
}

} // namespace kernelmill
