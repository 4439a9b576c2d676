#include "actors/episode/transition.hpp"

#include <algorithm>

namespace kernelmill {

const char* transition_of(const std::vector<past_candidate>& before, std::string_view sha256,
                          bool accepted) {
  if (sha256.empty()) return "none";
  auto last = std::find_if(before.rbegin(), before.rend(),
                           [](const past_candidate& x) { return !x.sha256.empty(); });
  if (last == before.rend()) return "synthesized";
  if (last->sha256 == sha256) return "repeated";
  bool seen =
      std::any_of(last, before.rend(), [&](const past_candidate& x) { return x.sha256 == sha256; });
  if (seen) return "reverted";
  return accepted && !before.back().accepted ? "repaired" : "rewritten";
}

} // namespace kernelmill
