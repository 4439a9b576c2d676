#include "storage/export/rows/trained.hpp"

#include <algorithm>

namespace kernelmill::exports {

std::vector<trained_episode> trained_episodes(const group& from, const row_context& in,
                                              logprobs wanted) {
  std::vector<trained_episode> result;
  if (!from.ended) {
    in.leave_out("open_groups");
    return result;
  }
  for (const auto& e : from.episodes) {
    // An episode has an advantage when every turn of it has a reward.
    auto own = first_own(e);
    bool counts = e.advantage && own < e.turns.size() &&
                  std::all_of(e.turns.begin() + static_cast<std::ptrdiff_t>(own), e.turns.end(),
                              [](const turn& x) { return x.back.has_value(); });
    if (!counts) {
      in.leave_out("not_compared");
      continue;
    }
    if (!has_all_tokens(e)) {
      in.leave_out("without_token_ids");
      continue;
    }
    auto sequences = sequences_of(e);
    std::erase_if(sequences, [&](const sequence& x) { return x.turns.back().turn < own; });
    if (wanted == logprobs::needed &&
        !std::all_of(sequences.begin(), sequences.end(),
                     [](const sequence& x) { return x.has_logprobs; })) {
      in.leave_out("without_logprobs");
      continue;
    }
    result.push_back({&e, *e.advantage, std::move(sequences)});
  }
  return result;
}

} // namespace kernelmill::exports
