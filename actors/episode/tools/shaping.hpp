#pragma once

// What tool calls earn beside the verdict of what is submitted, by gpu_rl's optimize_reward_v1:
// each call costs a little, and looking, going back and closing well earn a little. It is a
// function of an episode's calls in their order, so a resumed run and `rescore` come to the same
// as the run. Sums are of thousandths, so they have no order of their own.

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/episode/tools/tool_list.hpp"
#include "actors/governance/calls_verdict.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill {

/// What a call costs, in thousandths of a reward.
int cost_of(tool_kind x) noexcept;

/// What shaping reads of a call.
struct shaped_call {
  const tool* what = nullptr; ///< null: there is no such tool
  uint32_t steps = 0;
  bool refused = false;
  std::string input, output;
  std::string left, right;        ///< the candidates of a comparison
  const tool* measured = nullptr; ///< null: nothing was measured
  bool built = false, accepted = false;
  double low = 0, high = 0; ///< of the speedup; 0: not timed
};

struct call_words {
  std::string_view tool, arguments, status, input, output, measured;
  uint32_t steps;
};
shaped_call shaped_call_of(const call_words& words, wire::TurnFacts::Reader facts,
                           wire::Verdict::Reader verdict);

class shaping_ledger {
public:
  explicit shaping_ledger(shaping_kind kind = shaping_kind::none) : kind_(kind) {}

  /// Takes the calls of the next turn; `submitted` is the verdict of its submission, or null.
  /// Returns what they earn: within an episode each term stays within its limits.
  std::vector<reward_part> take(std::string_view verb, std::span<const shaped_call> calls,
                                const wire::Verdict::Reader* submitted);

  /// The same from a record, with what measurements found. The turn must outlive the result.
  calls_effect take(wire::TurnRecord::Reader turn, const wire::Verdict::Reader* submitted);

private:
  enum term : size_t { cost, compare_use, regression, supersede, recovery, closeout, near_miss };
  static constexpr size_t term_count = near_miss + 1;

  struct knowledge {
    std::optional<bool> right;
    double low = 0, high = 0;
  };

  void add(term x, int thousandths);
  void follow(std::string_view verb, const shaped_call& x);
  void learn(const shaped_call& x);
  void compare(std::string_view verb, const shaped_call& x);
  void close(std::string_view verb, wire::Verdict::Reader submitted, const std::string& candidate);

  shaping_kind kind_;
  std::array<int, term_count> sums_{}; // of the episode
  std::array<int, term_count> now_{};  // of the turn
  std::map<std::string, knowledge, std::less<>> candidates_;
  std::set<std::pair<std::string, std::string>> compared_;
  std::string promoted_;
  bool patched_ = false;
  bool regressed_ = false; // a comparison showed it, and nothing was reverted since
};

} // namespace kernelmill
