#include "storage/export/rows/sequences.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kernelmill::exports {

namespace {

bool has_tokens(const turn& x) {
  return !x.prompt_ids.empty() && !x.ids.empty();
}

bool goes_on(const sequence& so_far, const turn& next) {
  return next.prompt_ids.size() >= so_far.ids.size() &&
         std::equal(so_far.ids.begin(), so_far.ids.end(), next.prompt_ids.begin());
}

void append_prompt(sequence& to, const turn& x) {
  to.ids.insert(to.ids.end(), x.prompt_ids.begin() + static_cast<std::ptrdiff_t>(to.ids.size()),
                x.prompt_ids.end());
  to.mask.resize(to.ids.size(), 0);
  to.logprobs.resize(to.ids.size(), 0);
}

void append_answer(sequence& to, const turn& x, size_t position) {
  auto start = static_cast<uint32_t>(to.ids.size());
  bool counts = x.back.has_value();
  to.ids.insert(to.ids.end(), x.ids.begin(), x.ids.end());
  to.mask.resize(to.ids.size(), counts);
  for (size_t i = 0; i < x.ids.size(); ++i) {
    bool told = i < x.logprobs.size() && std::isfinite(x.logprobs[i]);
    to.logprobs.push_back(told ? x.logprobs[i] : 0);
    to.has_logprobs &= told || !counts;
  }
  to.turns.push_back({position, start, static_cast<uint32_t>(to.ids.size())});
  for (const auto& span : x.versions)
    to.versions.push_back({span.version, start + span.start, start + span.end});
}

/// Whether a fork shares all answers so far: the prompt of its first answer has them.
bool in_prompt(const sequence& so_far, const episode& x) {
  return std::all_of(so_far.turns.begin(), so_far.turns.end(),
                     [&](const auto& span) { return x.turns[span.turn].shared; });
}

} // namespace

std::vector<sequence> sequences_of(const episode& x) {
  std::vector<sequence> result;
  for (size_t i = 0; i < x.turns.size(); ++i) {
    const auto& turn = x.turns[i];
    if (!has_tokens(turn)) continue;
    if (result.empty() || !goes_on(result.back(), turn)) {
      result.emplace_back();
      result.back().prompt_length = static_cast<uint32_t>(turn.prompt_ids.size());
    }
    append_prompt(result.back(), turn);
    if (!turn.shared && in_prompt(result.back(), x))
      result.back().prompt_length = static_cast<uint32_t>(result.back().ids.size());
    append_answer(result.back(), turn, i);
  }
  return result;
}

bool has_all_tokens(const episode& x) {
  return std::all_of(x.turns.begin(), x.turns.end(), has_tokens);
}

int64_t version_number(const std::string& version) {
  auto digits = version.find_last_not_of("0123456789") + 1; // npos + 1 is 0: digits alone
  int64_t result = 0;
  auto [end, code] =
      std::from_chars(version.data() + digits, version.data() + version.size(), result);
  return code == std::errc{} ? result : 0;
}

} // namespace kernelmill::exports
