#pragma once

// Are losses to the infrastructure correlated with what the policy does? A lost turn has no reward
// and is left out, which is harmless only while losses fall on all turns alike. Where long answers
// are lost more often than short ones, a trainer sees fewer of them.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// Counts the turns of a run by task, by the answer's language and by its length: those that were
/// committed, and those that were lost before that. A value whose size does not grow with the
/// number of turns.
class loss_ledger {
public:
  struct count {
    uint64_t lost = 0, turns = 0;
  };

  /// Something that a turn has, and how many of those that have it were lost.
  struct row {
    std::string factor; ///< "task", "language", "length"
    std::string level;  ///< "native/row_sum", "cpp", "4 to 8 KiB"
    count here, all;
    double p = 1; ///< that chance puts so many of the lost turns here, times the comparisons made
  };

  /// `length` is that of the completion, in bytes.
  void note(std::string_view task, std::string_view language, uint64_t length, bool lost);

  /// A turn that was lost before there was an answer: it has neither language nor length.
  void note_unanswered(std::string_view task);

  /// Where more turns were lost than chance explains, the least likely first: Fisher's exact test
  /// of each level against the rest, one-sided, with Bonferroni's correction for all levels of all
  /// factors. Nothing below `least_lost` lost turns.
  std::vector<row> suspects() const;

  /// The same in words, one sentence each.
  std::vector<std::string> alarms() const;

  static constexpr uint64_t least_lost = 8;
  static constexpr double significance = 0.01;

private:
  static constexpr size_t factors = 3;
  void add(size_t factor, std::string_view level, bool lost);

  std::array<std::map<std::string, count, std::less<>>, factors> counts_;
  std::array<count, factors> all_;
};

/// The chance that `lost` or more of a level's turns are among the lost ones of all, where losses
/// fall on all turns alike.
double chance_of_losses(const loss_ledger::count& level, const loss_ledger::count& all);

} // namespace kernelmill
