#include "launch/commands/store/left_out_words.hpp"

#include <algorithm>
#include <map>

#include "messages/base/counted.hpp"

namespace kernelmill::commands {

namespace {

struct reason_words {
  const char *one, *many;
};

const std::map<std::string, reason_words>& known_reasons() {
  static const std::map<std::string, reason_words> all{
      {"branches", {"branch of another episode", "branches of other episodes"}},
      {"contaminated_groups",
       {"group with a near-duplicate of the other split",
        "groups with near-duplicates of the other split"}},
      {"episodes_not_taken",
       {"episode without a turn that passed the filters",
        "episodes without a turn that passed the filters"}},
      {"episodes_of_other_governance",
       {"episode that the form does not take by its readiness (--governance chooses others)",
        "episodes that the form does not take by their readiness (--governance chooses others)"}},
      {"groups_of_forbidden_models",
       {"group of a model whose licence forbids it", "groups of models whose licence forbids it"}},
      {"groups_of_other_tasks",
       {"group of a task that was not asked for", "groups of tasks that were not asked for"}},
      {"groups_with_forbidden_examples",
       {"group with an example whose licence forbids it",
        "groups with examples whose licence forbids it"}},
      {"groups_without_contrast",
       {"group whose answers are alike in reward", "groups whose answers are alike in reward"}},
      {"infrastructure_turns",
       {"turn lost to the infrastructure", "turns lost to the infrastructure"}},
      {"not_compared",
       {"episode without an advantage: a turn of it has no reward",
        "episodes without an advantage: a turn of each has no reward"}},
      {"not_timed_turns", {"turn that was not timed", "turns that were not timed"}},
      {"open_episodes", {"episode that has not ended", "episodes that have not ended"}},
      {"open_groups",
       {"group with an episode that has not ended", "groups with episodes that have not ended"}},
      {"open_turns", {"turn that asked for no verdict", "turns that asked for no verdict"}},
      {"other_prompts",
       {"answer to another prompt than its group's first",
        "answers to other prompts than their group's first"}},
      {"turns_not_taken",
       {"turn that the form or a filter does not take",
        "turns that the form or a filter does not take"}},
      {"turns_without_kernel", {"turn without a kernel", "turns without a kernel"}},
      {"without_logprobs",
       {"episode without log-probabilities", "episodes without log-probabilities"}},
      {"without_token_ids", {"episode without token ids", "episodes without token ids"}}};
  return all;
}

} // namespace

std::string left_out_words(const std::string& reason, uint64_t count) {
  auto known = known_reasons().find(reason);
  if (known != known_reasons().end()) return counted(count, known->second.one, known->second.many);
  auto words = reason;
  std::replace(words.begin(), words.end(), '_', ' ');
  return std::to_string(count) + " " + words;
}

} // namespace kernelmill::commands
