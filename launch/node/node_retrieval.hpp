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

/// What makes of a task's kernels examples, or keeps them from that: those of a task that is held
/// out are none, nor those of one that may not be trained on, since a model learns from its
/// prompts.
struct shown_task {
  std::string split;
  std::string source;
  bool hidden = true;
};
using shown_task_map = std::map<std::string, shown_task>; // by id
shown_task_map shown_tasks(const std::vector<std::shared_ptr<const task>>& tasks,
                           const run_rights& rights);

/// The candidate of an accepted turn; nothing when the turn was not accepted or its text is gone.
std::optional<kernel_example> verified_of(const artifact_store& artifacts,
                                          wire::TurnRecord::Reader turn);

/// Adds the candidate of an accepted turn to the feed, to be shown or not as its task says.
void feed_verified(kernel_feed& feed, const artifact_store& artifacts, const shown_task_map& shown,
                   wire::Record::Reader record);

} // namespace kernelmill
