#pragma once

// The candidates of an episode of mode `tools`: a graph by parent, what is known of each, which one
// is active, and which is the best so far. What a turn has added is written into its record and
// read back from it, so that a resumed episode goes on with the same graph.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/lineage.capnp.h"
#include "messages/verdict.capnp.h"

namespace kernelmill {

class artifact_batch;

struct board_candidate {
  std::string id; ///< "c0"
  std::string parent;
  std::shared_ptr<const std::string> source;
  std::string sha256;
  std::string role, origin;
  uint32_t depth = 0;
  std::string patch; ///< from the parent
  std::string patch_kind;
  std::string summary;

  std::string status = "draft"; ///< the last mark
  std::optional<bool> built, right;
  std::optional<bool> passed; ///< the last measurement
  struct {
    double estimate = 0, low = 0, high = 0; ///< low 0: not timed
  } speedup;
  bool promoted = false;
  std::string measured_by; ///< the last tool that measured it, for `replay`
  std::string category;    ///< of its last verdict
  std::map<std::string, std::string, std::less<>> sections; ///< "build", "result", ...: last words
};

struct strategy_note {
  std::string name, state, note;
};

class candidate_board {
public:
  /// Adds a candidate; it becomes the active one. Its parent is on the board, or empty.
  board_candidate& add(std::string parent, std::string source, std::string role, std::string origin,
                       std::string summary);

  board_candidate* find(std::string_view id);
  const board_candidate* find(std::string_view id) const;
  board_candidate* active() { return find(active_); }
  const board_candidate* active() const { return find(active_); }
  void activate(const board_candidate& x) { active_ = x.id; }

  /// What is known of a text holds for its copy.
  static void inherit(board_candidate& to, const board_candidate& from);

  /// Notes what was found out of a candidate.
  void mark(board_candidate& x, std::string status);

  /// The candidate that a submission takes: the promoted one, else that with the best lower bound
  /// of its speedup, else the newest that is right. Null: none is right.
  const board_candidate* best() const;
  /// The one that was promoted last; null: none.
  const board_candidate* promoted() const;

  void note(strategy_note x);
  const std::vector<strategy_note>& strategies() const { return strategies_; }

  const std::deque<board_candidate>& all() const { return candidates_; }

  /// Learns what one call has found out: `tool` names it, `words` is what the policy was told.
  void learn(board_candidate& x, std::string_view tool, wire::TurnFacts::Reader facts,
             wire::Verdict::Reader verdict, std::string words);

  /// Writes what was added and marked since the last begin_turn().
  void write(wire::TurnRecord::Builder out, artifact_batch& artifacts) const;
  void begin_turn();
  /// Takes what a record says, as write() has written it. `limit`: of the words of a measurement.
  void restore(wire::TurnRecord::Reader record, size_t limit);

private:
  struct fresh_mark {
    std::string id, status;
    double estimate, low, high;
  };

  void settle_dominated();
  void restore(wire::CandidateNode::Reader node);
  void restore(wire::CandidateMark::Reader mark);

  std::deque<board_candidate> candidates_; // by number; references stay valid
  std::string active_;
  std::vector<strategy_note> strategies_;
  size_t first_fresh_ = 0;
  std::vector<fresh_mark> marks_;
  std::vector<strategy_note> fresh_notes_;
};

/// What a policy is told of a measurement; of a build that passed there is no verdict.
std::string words_of_measurement(std::string_view tool, wire::TurnFacts::Reader facts,
                                 wire::Verdict::Reader verdict, size_t limit);

/// "benchmarked, right, 1.32x (1.29x to 1.35x)": what is known, on one line.
std::string state_line(const board_candidate& x);

} // namespace kernelmill
