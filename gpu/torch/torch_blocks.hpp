#pragma once

// The blocks of pairs that the torch referee has timed so far, by kind of contents.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/referee/evaluation.hpp"
#include "gpu/timing/timing_statistics.hpp"

namespace kernelmill {

/// Thread safety: none.
class torch_blocks {
public:
  /// Takes an answer to "block". Throws nlohmann::json::exception where a field lacks.
  void take(const nlohmann::json& answer);

  bool empty() const noexcept { return kinds_.empty(); }
  size_t count() const;

  /// Blocks, in seconds a call, without the part of a row that is none of its calls', and with what
  /// the candidate is charged because it makes the calls of a row together. The problem's own kind
  /// comes first.
  std::vector<kind_blocks> without_fixed() const;

  /// Whether more must come, however well the speedup is known: each of some blocks of other
  /// contents finds a shortcut by contents that most of them give away.
  bool wants_more_kinds() const;

  /// The kind that the next block is to have, as of unsettled_kind(). Empty where there is none.
  std::string wanted() const;

  /// Whether a kind on which the candidate is slower might go unnoticed: noise is unknown yet, or
  /// kinds are. Who uses up the time, in trials that nobody times, could see to that.
  bool is_undecided() const;

  const calls_apart& apart() const noexcept { return apart_; }

  /// What charges rest on, in seconds, by the names of the torch referee.
  const std::map<std::string, double>& seen() const noexcept { return seen_; }

  /// Writes samples and each kind's median times.
  void write(timing_record& into) const;

private:
  void keep(const timed_block& block, const std::string& kind, uint32_t calls);

  std::vector<kind_blocks> kinds_; // seconds a call with what follows
  std::vector<uint32_t> calls_;    // of each kind
  double fixed_ = 0;               // seconds a call that are no call's, as is known by now
  calls_apart apart_;
  std::map<std::string, double> seen_;
  bool has_others_ = false; // of contents
  bool unmet_ = false;      // nothing is known of some yet
};

/// The name of the kind that a problem draws itself, as kernelmill_torch/contents.py has it.
inline constexpr const char* own_kind = "own";

} // namespace kernelmill
