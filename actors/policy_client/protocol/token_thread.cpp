#include "actors/policy_client/protocol/token_thread.hpp"

#include <algorithm>

namespace kernelmill {

token_thread keep_thread(token_span prompt, token_span completion) {
  token_thread result;
  if (prompt.empty() || completion.empty()) return result;
  result.ids.reserve(prompt.size() + completion.size());
  result.ids.assign(prompt.begin(), prompt.end());
  result.ids.insert(result.ids.end(), completion.begin(), completion.end());
  result.sampled = static_cast<uint32_t>(completion.size());
  return result;
}

token_audit audit_tokens(bool first_turn, token_span kept, token_span prompt,
                         token_span completion) {
  token_audit result;
  result.kept = static_cast<uint32_t>(kept.size());
  if (prompt.empty() || completion.empty()) {
    result.state = wire::TokenState::INEXACT;
    return result;
  }
  auto common = common_prefix(kept, prompt);
  result.position = static_cast<uint32_t>(common);
  auto goes_on = first_turn ? true : !kept.empty() && common == kept.size();
  result.state = goes_on ? wire::TokenState::EXACT : wire::TokenState::BRANCH;
  return result;
}

size_t common_prefix(token_span a, token_span b) noexcept {
  auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<size_t>(end - a.begin());
}

token_span common_suffix(token_span a, token_span b) noexcept {
  auto end = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first;
  return a.last(static_cast<size_t>(end - a.rbegin()));
}

std::optional<std::vector<int32_t>> extend_thread(const token_thread& thread, token_span tail) {
  if (thread.ids.empty() || tail.empty()) return std::nullopt;
  token_span ids{thread.ids};
  // The longest end of what was sampled that is how the tail begins.
  auto overlap = std::min<size_t>(thread.sampled, tail.size());
  while (overlap > 0 && !std::ranges::equal(ids.last(overlap), tail.first(overlap))) --overlap;
  auto result = thread.ids;
  auto rest = tail.subspan(overlap);
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

} // namespace kernelmill
