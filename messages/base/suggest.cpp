#include "messages/base/suggest.hpp"

#include <algorithm>
#include <vector>

namespace kernelmill {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view last_component(std::string_view name) {
  auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

} // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string closest(std::string_view word, std::span<const std::string> choices) {
  if (word.empty() || word.size() > 128) return {};
  std::string best;
  // Ranks: 0 equal but for case, then by distance; a shared last component beats a far spelling.
  // Of three letters one may be wrong: any two words of three letters share one.
  size_t best_rank = word.size() == 3 ? 2 : word.size() / 3 + 2;
  for (const auto& choice : choices) {
    // No distance is below that of the lengths: most choices need no table.
    auto longer = std::max(word.size(), choice.size()) - std::min(word.size(), choice.size());
    auto rank = longer < best_rank ? edit_distance(word, choice) : longer;
    if (last_component(choice) == last_component(word)) rank = std::min<size_t>(rank, 1);
    if (word.size() >= 3 && choice.starts_with(word)) rank = std::min<size_t>(rank, 1);
    if (word.size() < 3) rank += 1;
    if (rank < best_rank) {
      best_rank = rank;
      best = choice;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> choices) {
  auto found = closest(word, choices);
  return found.empty() ? std::string{} : "; did you mean '" + found + "'?";
}

} // namespace kernelmill
