#pragma once

// INTERNAL to launch/server/page: what the documents of a run are made of, from one reading of its
// records. It is a fortieth of their size, so that the next document needs no reading.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/study/run_scores.hpp"
#include "launch/analysis/watch/stored.hpp"

namespace kernelmill::page {

/// What the records of an episode come to. Texts are in run_facts::words.
struct episode_facts {
  uint32_t group = 0, member = 0;
  uint32_t turns = 0, accepted_turns = 0, findings = 0;
  uint32_t said_turns = 0; ///< by its own record, whose turns may be elsewhere
  uint32_t best_turn = 0;  ///< whose speedup `best_speedup` is
  bool has_ended = false;
  std::string_view task, outcome = "open", stop_reason;
  std::string_view categories; ///< of its turns, with spaces between them
  double committed_at = 0;     ///< of the latest record, seconds since 1970
  std::optional<double> best_reward, first_return;
  std::optional<reporting::measured_speedup> best_speedup;
};

struct finding_facts {
  uint32_t group, member, turn;
  std::string_view task, rule, severity, category, outcome;
  std::string evidence;
  double committed_at; ///< seconds since 1970
};

/// One evaluation in a slot.
struct slot_use {
  std::string_view lane, category;
  uint32_t group, member, turn;
  double begin, end, waited; ///< seconds
};

/// Values by the position of their turn in its episode, ascending.
using by_position = std::map<uint32_t, std::vector<double>>;

struct run_facts {
  std::string run; ///< its name
  watch::stored_summary summary;
  std::vector<episode_facts> episodes; ///< by group and member
  std::vector<finding_facts> findings; ///< the latest first
  std::vector<slot_use> uses;          ///< the latest first
  by_position rewards, speedups;
  study::run_scores scores;
  std::unordered_set<std::string> words; ///< each text once, where it stays

  run_facts() = default;
  run_facts(const run_facts&) = delete;
  run_facts& operator=(const run_facts&) = delete;
  run_facts(run_facts&&) = default;

  /// In memory, about.
  size_t bytes() const;
};

/// "g3.e1".
std::string name_of(const episode_facts& x);

/// Reads the whole run once. `goes_on` is asked now and then; empty: it does. Errors: those of the
/// store and of the manifest; "busy": it was to end early.
expected<run_facts> read_facts(const watch::world& in, const run_directory& run,
                               const std::function<bool()>& goes_on = {});

} // namespace kernelmill::page
