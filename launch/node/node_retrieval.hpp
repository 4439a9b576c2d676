#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/config/run_config.hpp"
#include "messages/lineage.capnp.h"
#include "retrieval/index.hpp"
#include "retrieval/kernel_feed.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill {

struct node_retrieval {
  std::shared_ptr<loaded_index> index; ///< null: the run has no retrieval
  std::shared_ptr<kernel_feed> feed;
  bool live = false; ///< kernels that this run verifies become examples
};

/// Opens the index that the configuration names, or builds one in memory from the cards. The leak
/// guard learns what solves the run's tasks: their baselines.
expected<node_retrieval> open_retrieval(const retrieval_section& config,
                                        const std::vector<std::shared_ptr<const task>>& tasks);

/// The candidate of an accepted turn; nothing when the turn was not accepted or its text is gone.
std::optional<verified_kernel> verified_of(const artifact_store& artifacts,
                                           wire::TurnRecord::Reader turn);

/// Adds the candidate of an accepted turn to the feed.
void feed_verified(kernel_feed& feed, const artifact_store& artifacts, wire::Record::Reader record);

} // namespace kernelmill
