#pragma once

// How much evidence a stored turn carries, and how good an example it makes. Both describe records;
// nothing that judges a turn reads them, so they cannot enter a reward.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/lineage.capnp.h"
#include "messages/verdict.capnp.h"

namespace kernelmill {

/// What is there of each kind of evidence, from 0 to 1: whether it was looked at, not how it ended.
/// A kernel that is wrong for certain has as much of it as one that is right.
struct evidence_parts {
  double correctness = 0; ///< cases were compared, and the gate says what came out
  double performance = 0; ///< there is a speedup with an interval
  double determinism = 0; ///< the gate says
  double build = 0;       ///< half: what built it; half: that it compiled, or the compiler's words
  double profile = 0;     ///< counters were read
  double lineage = 0;     ///< id, what was asked, the answer, the candidate: a quarter each
};

/// 0.35, 0.25, 0.20, 0.10, 0.05, 0.05 of the parts, in that order.
double evidence_score(const evidence_parts& x);

/// Of a turn under its own verdict, or under another.
evidence_parts evidence_parts_of(wire::TurnRecord::Reader turn);
evidence_parts evidence_parts_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict);

/// How good an example a turn makes: a label beside the kind of its episode, which it does not
/// change.
///   positive    accepted, and no copy of what was shown
///   near_miss   compiled, at least half of its cases right, no critical finding, not accepted
///   negative    judged, and none of these
///   unusable    lost to the infrastructure, or without a verdict: it asked for none
enum class turn_quality : unsigned char { unusable, negative, near_miss, positive };
const char* to_string(turn_quality x) noexcept;
turn_quality quality_of(wire::TurnRecord::Reader turn);
turn_quality quality_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict);

/// The evidence of a run or of a part of it: docs/reference/glossary.md#figures.
class run_evidence {
public:
  /// A turn that asked for no verdict is not in the mean.
  void add(wire::TurnRecord::Reader turn);

  std::optional<double> mean() const; ///< of the scores; nothing of no turn
  uint64_t near_misses() const noexcept { return near_misses_; }

private:
  double sum_ = 0;
  uint64_t turns_ = 0, near_misses_ = 0;
};

/// What an episode as a whole is good for.
struct episode_use {
  bool eligible = false;
  std::vector<std::string> reasons; ///< why not
};
struct episode_evidence {
  double score = 0;                              ///< of its best turn
  turn_quality quality = turn_quality::unusable; ///< of the best of its turns
  episode_use benchmark, sft, rl;
};

/// Adds up an episode turn by turn.
class evidence_summary {
public:
  void add(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict);
  /// `best_turn` and `kind` are those of the episode's own record; none: it has not ended.
  episode_evidence finish(std::optional<uint32_t> best_turn,
                          std::optional<wire::EpisodeKind> kind) const;

private:
  struct seen {
    uint32_t turn = 0;
    double score = 0;
    evidence_parts parts;
    turn_quality quality = turn_quality::unusable;
    bool paid = false, critical = false;
    bool open = false; ///< asked for no verdict
  };
  std::vector<seen> turns_;
};

} // namespace kernelmill
