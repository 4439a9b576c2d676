#pragma once

// What the licences allow of a run: which files of licences there are, what they say of its tasks,
// and what its manifest keeps of that. Exports, indexes and other commands decide from the
// manifest, since files of a task may change or go after the run.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/governance/licences.hpp"
#include "gpu/task/task.hpp"
#include "messages/base/json_value.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill {

/// Those of the installation, then those in $XDG_DATA_HOME/kernelmill/licences. Errors:
/// "bad_licence".
expected<licence_table> installed_licences();

/// A task with what may be done with it.
struct task_rights {
  origin_facts what;
  licence_decision evaluate, train, share;
};

/// Of what the policy's model answers.
struct answer_rights {
  std::string model;
  licence_decision train, share;
};

struct run_rights {
  std::vector<task_rights> tasks;
  std::vector<answer_rights> answers; ///< of models that files of licences speak of
  std::set<std::string> accepted;     ///< terms

  const task_rights* find(const std::string& task) const;
};

run_rights rights_of(const licence_table& licences, const std::vector<origin_facts>& tasks,
                     std::set<std::string> accepted);

/// `named`: a source that `policy.licence` may name.
std::optional<answer_rights> rights_of_answers(const licence_table& licences,
                                               const std::string& model, const std::string& named,
                                               const std::set<std::string>& accepted);

origin_facts origin_of(const task& x);

/// The tasks that a manifest lists; those of older programs have no source, and are decided about
/// by their ids.
std::vector<origin_facts> origins_of(const nlohmann::ordered_json& manifest);

/// Errors: "licence_forbids" when a task must not even be evaluated.
expected<void> may_run(const run_rights& x);

/// What stands under "retrieval" in a manifest: where its cards are from, and those kernels of the
/// index that are not for training everywhere.
nlohmann::ordered_json retrieval_json(const licence_table& licences, const loaded_index* index,
                                      bool live);

/// One entry a source: {"source", "licence", "tasks", "evaluate", "train", "share", "reason"}; of a
/// model {"model", ...} without tasks.
nlohmann::ordered_json to_json(const run_rights& x);

/// The same for people, a line a source.
std::vector<std::string> lines_of(const run_rights& x);

} // namespace kernelmill
