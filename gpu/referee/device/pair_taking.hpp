#pragma once

// Which of the rows of a pair count, where some are disturbed and some did not wait for the gate.

#include <functional>
#include <optional>

#include "gpu/referee/device/clocked_rows.hpp"

namespace kernelmill {

struct made_pair {
  row_pair rows;
  bool gate_held =
      true; ///< by the clock of the GPU's work: all launches waited, and nothing is wrong
};

enum class pair_outcome : unsigned char { counts, gate_lost, ended };

/// Thread safety: none.
class pair_taking {
public:
  /// Failures of the gate, over all pairs, by which it is lost.
  static constexpr int gate_trials = 3;

  /// Takes a pair with contents of one kind by `make`, which makes one and says nothing when timing
  /// cannot go on. A pair of which the gate failed is taken again with the same kind, and nothing
  /// of it counts: its outputs may be wrong, and nobody is blamed for that. One of another kind
  /// than the task's own, 0, that is longer than the `pairs` with that is taken again, and the
  /// shorter rows count: there are too few to tell who was disturbed.
  pair_outcome take(size_t kind, const std::vector<row_pair>& pairs,
                    const std::function<std::optional<made_pair>()>& make, row_pair& into);

private:
  int failures_ = 0;
};

} // namespace kernelmill
