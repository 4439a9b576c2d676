#pragma once

// The samples of a run, read from its store.

#include "launch/analysis/report/sample.hpp"
#include "messages/error.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::reporting {

enum class sample_unit : unsigned char {
  episode, ///< its accepted turn with the highest lower bound; else its last turn that compiled;
           ///< else its last turn
  turn
};

/// Reads group by group. A turn is correct when it was accepted: right, the same each time and
/// without a critical finding. Left out are turns that the infrastructure lost and, by episode, the
/// whole of an episode that lost one (counting it only where it had succeeded before would flatter)
/// and one that has not ended. Turns that a fork shares are samples of the run that it began from.
expected<sample_set> read_samples(const store& from, const run_directory& run, sample_unit by);

} // namespace kernelmill::reporting
