#pragma once

// Episodes as sequences of token ids. A turn whose prompt begins with all ids of the sequence so
// far goes on with it; one whose prompt departs from it begins another.

#include "storage/export/rows/material.hpp"

namespace kernelmill::exports {

/// Where the sampled tokens of a turn are in its sequence.
struct sampled_span {
  size_t turn = 0; ///< position among the episode's turns
  uint32_t start = 0, end = 0;
};

struct sequence {
  std::vector<int32_t> ids;
  std::vector<uint8_t> mask;         ///< 1: sampled, in a turn that counts
  std::vector<float> logprobs;       ///< 0 where nothing was sampled
  bool has_logprobs = true;          ///< false: one that counts was not told
  uint32_t prompt_length = 0;        ///< ids before the first sampled one
  std::vector<weight_span> versions; ///< in positions of `ids`
  std::vector<sampled_span> turns;
};

/// The sequences of an episode, in order; turns without ids are in none. A turn counts when it has
/// a return; the others are context.
std::vector<sequence> sequences_of(const episode& x);

/// Whether every turn has its ids in a sequence.
bool has_all_tokens(const episode& x);

/// Digits at the end of the latest version's name: "step-12" is 12; 0 when there are none.
int64_t version_number(const std::string& version);

} // namespace kernelmill::exports
