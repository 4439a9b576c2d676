#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/task/task.hpp"
#include "launch/config/run_config.hpp"
#include "launch/node/run_rights.hpp"
#include "messages/lineage.capnp.h"
#include "retrieval/search/index.hpp"
#include "retrieval/search/kernel_feed.hpp"
#include "retrieval/search/live_kernels.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill {

struct node_retrieval {
  std::shared_ptr<loaded_index> index; ///< null: the run has no retrieval
  std::shared_ptr<kernel_feed> feed;
  bool live = false;                        ///< kernels that this run verifies become examples
  std::shared_ptr<live_kernel_writer> file; ///< keeps them for other runs; null: nothing does
  retracted_kernels retracted;
  std::string warning; ///< of live.jsonl; empty: none
};

/// Opens the index that the configuration names, with the kernels in its live.jsonl, or builds one
/// in memory from the cards. The leak guard learns what solves the run's tasks: their baselines.
expected<node_retrieval> open_retrieval(const retrieval_section& config,
                                        const std::vector<std::shared_ptr<const task>>& tasks);

/// The texts of a task's baselines, of every backend.
std::vector<std::string> baselines_of(const task& x);

/// Tells an index which of these tasks are held out, and its guard what solves them: their
/// baselines, and which of them ask for the same.
void know_tasks(loaded_index& index, const std::vector<std::shared_ptr<const task>>& tasks);

/// The candidate of an accepted turn, with the device that judged it and the day; nothing when the
/// turn was not accepted or its text is gone.
std::optional<kernel_example> verified_of(const artifact_store& artifacts,
                                          wire::TurnRecord::Reader turn);

} // namespace kernelmill
