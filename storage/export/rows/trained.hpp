#pragma once

// What the rows of trainers are made of: the members of a group that can be trained on by token.

#include <algorithm>

#include "messages/base/json_value.hpp"
#include "storage/export/rows/rows.hpp"
#include "storage/export/rows/sequences.hpp"

namespace kernelmill::exports {

struct trained_episode {
  const episode* of = nullptr;
  double advantage = 0;
  std::vector<sequence> sequences;

  /// The discounted return from the first turn of `x` on that is its own: what its group compares.
  double score(const sequence& x) const {
    return *of->turns[std::max(x.turns.front().turn, first_own(*of))].back;
  }
  const turn& last_turn(const sequence& x) const { return of->turns[x.turns.back().turn]; }
};

enum class logprobs : unsigned char { needed, optional };

/// Members with an advantage and all of their ids, in order; counts the others by reason. None of a
/// group that has not ended.
std::vector<trained_episode> trained_episodes(const group& from, const row_context& in,
                                              logprobs wanted);

// -- parts of sequences -------------------------------------------------------------------------

template <class T>
nlohmann::ordered_json front(const std::vector<T>& xs, uint32_t length) {
  auto result = nlohmann::ordered_json::array();
  for (uint32_t i = 0; i < length; ++i) result.push_back(xs[i]);
  return result;
}

/// The elements behind the prompt.
template <class T>
std::vector<T> behind(const std::vector<T>& xs, uint32_t prompt_length) {
  return {xs.begin() + static_cast<std::ptrdiff_t>(prompt_length), xs.end()};
}

} // namespace kernelmill::exports
