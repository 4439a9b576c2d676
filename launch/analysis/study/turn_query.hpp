#pragma once

// A question over the turns of runs: which turns, which of their fields, in which order. Runs are
// read group by group; memory is that of the largest group and of the rows that a sort keeps.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch/analysis/study/turn_fields.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::study {

struct turn_question {
  std::string where;               ///< a condition over turn_keys(); empty: all turns
  std::vector<std::string> fields; ///< of the answer's rows, in the order of the table
  std::string sort;                ///< "KEY" or "-KEY"; empty: the order of the store
  uint64_t limit = 0;              ///< rows; 0: all. A sort needs one
};

class turn_query {
public:
  /// Errors: "usage" with the nearest field.
  static expected<turn_query> parse(turn_question what);

  using row_taker = std::function<expected<void>(json row)>;

  /// Gives the rows of a run that are wanted to `to` as they are found, or keeps them for finish()
  /// when they are sorted. Errors: those of the store, of the artifacts and of `to`.
  expected<void> read(const store& from, const turn_source& of, const row_taker& to);

  /// Gives what a sort has kept.
  expected<void> finish(const row_taker& to);

  bool is_full() const; ///< no further row is wanted, and none is counted
  uint64_t turns() const { return turns_; }
  uint64_t matched() const { return matched_; }
  uint64_t given() const { return given_; }

private:
  turn_query() = default;
  expected<void> take(json row, const row_taker& to);
  expected<void> read_group(const store& from, const turn_source& of, uint32_t group,
                            const row_taker& to);

  turn_question what_;
  watch::condition wanted_;
  std::string sort_key_;
  bool down_ = false;
  std::vector<std::string> first_, all_; ///< fields for the condition; for condition, sort and row
  bool waits_ = false;                   ///< the condition asks for what ends know
  bool waits_for_row_ = false;           ///< the row has such fields
  std::vector<json> kept_;               ///< a heap, whose front is the last
  uint64_t turns_ = 0, matched_ = 0, given_ = 0;
};

} // namespace kernelmill::study
