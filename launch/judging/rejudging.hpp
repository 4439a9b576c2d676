#pragma once

// The facts of stored turns judged again. Nothing is built, run or asked of a policy server: a
// verdict is a function of a turn's facts and the rules, and this applies other rules to the same
// facts.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/episode/returns.hpp"
#include "actors/governance/judge.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill {

struct scoring_rules {
  governance_config judge;
  double gamma = 1;
  advantage_kind advantage = advantage_kind::normalized;
};

/// How the new verdicts stand to the old ones.
struct rejudging_counts {
  uint64_t groups = 0, episodes = 0, turns = 0;
  uint64_t equal = 0;         ///< turns whose verdict is the same, byte for byte
  uint64_t other_outcome = 0; ///< turns that were accepted and are not, and the like
  uint64_t other_reward = 0;  ///< turns that earn something else
  uint64_t equal_ends = 0;    ///< episodes whose returns and readiness are the same
  double reward_before = 0, reward_after = 0; ///< sums over turns rewarded both times
  uint64_t paid_both = 0;
};

/// Texts of a turn that its facts leave out. Asked for only where the rules read them.
struct answer_texts {
  std::string completion, kernel;
};
using answer_reader = std::function<expected<answer_texts>(wire::TurnRecord::Reader)>;

/// Judges every committed turn of a group, then scores its ended episodes and the group if it has
/// ended. The records hold what verdicts change and nothing else, and no time: the same facts and
/// rules give the same bytes. Errors: those of `read`.
expected<std::vector<Message<wire::Record>>> rejudge(const stored_group& facts,
                                                     const scoring_rules& rules,
                                                     rejudging_counts& counts,
                                                     const answer_reader& read = {});

/// Whether two verdicts are the same byte for byte in Cap'n Proto's canonical form.
bool is_same_verdict(wire::Verdict::Reader a, wire::Verdict::Reader b);

} // namespace kernelmill
