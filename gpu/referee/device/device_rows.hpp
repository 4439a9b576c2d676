#pragma once

// INTERNAL to gpu/referee: one row of calls on a GPU, and the look at all that it did.
//
// First a call on a set of its own, whose contents never come again. Only when that is over the
// contents of the row are put there, and then the clock starts: nothing that is useful to the row
// can be done before.

#include <functional>
#include <string>
#include <vector>

#include "gpu/referee/device/contents_plan.hpp"
#include "gpu/referee/device/truth.hpp"
#include "gpu/referee/evaluation.hpp"
#include "gpu/referee/row_arithmetic.hpp"

namespace kernelmill {

class program_slot;

/// Who makes the calls of a row.
struct row_maker {
  candidate_process& process;
  program_slot* program = nullptr; ///< where the process runs device code
};

struct row_order {
  unsigned calls = 1;
  paid_clock clock = paid_clock::call; ///< device: launches wait behind a gate
  size_t kind = 0;                     ///< index of kinds_of_contents()
  int limit_ms = 2'000;                ///< for each command
  bool apart = false; ///< a library's calls: each begins when all work of the one before is over
};

/// Makes rows at the timed shape, each call with a set of buffers of its own, in one arena.
/// Thread safety: none.
class device_rows {
public:
  /// `draw` decides orders; `name` keeps the contents apart from those of other rows.
  device_rows(prepared_task& prepared, device_arena& arena, const secret_seed& seed,
              std::string name, std::function<uint64_t()> draw);

  /// The sets of a row from now on. REQUIRES: at most those of the arena.
  void use(unsigned sets);
  unsigned sets() const noexcept { return sets_; }

  const std::vector<contents_kind>& kinds() const noexcept { return kinds_; }

  /// One call on its own, and as many as ordered against the clock, in an order of sets that nobody
  /// can know. Nothing when the process has ended.
  std::optional<row_times> make(const row_maker& who, const row_order& x);

  /// Whether launches of the latest row did not wait, because the process waited for them.
  bool gate_was_forced() const noexcept { return gate_forced_; }

  /// Seconds until contents are there while nobody makes a row.
  double fill_seconds(size_t kind);

  /// Looks at all that the latest row did, by so many times the bounds.
  device_audit audit(double share_of_bounds = 1);

  /// Says what an audit found that found something wrong.
  std::string describe(const device_audit& found);

  /// Adds how long fills, rows and audits took.
  void note_spans(std::vector<span>& into) const;

private:
  bool call_alone(const row_maker& who, const row_order& x);
  bool close_gate(const row_maker& who, const row_order& x);
  bool run_calls(const row_maker& who, const row_order& x);
  bool launch_calls(const row_maker& who, const row_order& x);
  double put_contents(size_t kind);
  void draw_order();
  std::vector<int64_t> values(unsigned set) const;
  std::vector<std::vector<int64_t>> row_values() const;
  void sample(const char* kernel, bool taking);
  void count_unasked(unsigned set);
  void give_reference(unsigned set);
  void check_truth(unsigned set, double share_of_bounds);
  template <class Visit>
  void for_each_filled(size_t kind, Visit visit);
  size_t kind_of(unsigned set) const noexcept { return set == sets_ ? 0 : kind_; }
  device_truth::reads source() const noexcept;

  prepared_task& prepared_;
  device_arena& arena_;
  device& gpu_;
  const task& spec_;
  secret_seed seed_;
  std::string name_;
  std::function<uint64_t()> draw_;
  std::vector<contents_kind> kinds_;
  unsigned sets_ = 1; // without the one of the call on its own, which is the last
  device_memory samples_;
  device_memory order_there_; // order_, for kernels
  bool in_place_ = false;     // device code, which runs no more when its outputs are looked at
  bool gate_forced_ = false;
  double launched_ = 0; // when the first call of the latest row had returned
  unsigned called_ = 0; // sets that the latest row called
  size_t kind_ = 0;     // of their contents
  uint64_t row_number_;
  std::vector<unsigned> order_;
  uint32_t sample_seed_ = 0;
  double filling_ = 0; // seconds
  double calling_ = 0;
  double auditing_ = 0;
};

} // namespace kernelmill
