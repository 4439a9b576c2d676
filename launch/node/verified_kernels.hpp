#pragma once

// Takes kernels that a run verifies out of its records: to the run's retriever, and to live.jsonl
// of its index, where later runs find them. What a later run may show is decided more strictly: it
// does not know this run's model, nor what its prompts showed.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "launch/node/node_retrieval.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

/// What makes of a task's kernels examples, or keeps them from that: those of a task that is held
/// out are none, nor those of one that may not be trained on, since a model learns from its
/// prompts.
struct shown_task {
  std::string split;
  std::string source;
  bool hidden = true;
  bool bound = false;    ///< whatever shows its kernels is bound by the source's terms
  std::string reference; ///< its computation, as code
};
using shown_task_map = std::map<std::string, shown_task>; // by id
shown_task_map shown_tasks(const std::vector<std::shared_ptr<const task>>& tasks,
                           const run_rights& rights);

/// Sources whose terms hold when a kernel is shown by another run.
struct kernel_terms {
  std::set<std::string> sources;
  bool refused = false; ///< one of them forbids to train on it

  void add(const kernel_terms& x);
  /// By decisions for training and sharing.
  void add(const licence_decision& train, const licence_decision& share);
};

/// Decides about answers and examples of a run.
struct terms_of_run {
  licence_table licences;
  std::string policy_licence;                   ///< a source that `policy.licence` names
  std::set<std::string> accepted;               ///< terms
  std::map<std::string, kernel_terms> examples; ///< by id: those of the index that are bound

  kernel_terms of_answers(const std::string& model) const;
  /// Takes the examples that retrieval_json() lists.
  void take_examples(const nlohmann::ordered_json& retrieval);
};

/// One thread at a time.
class verified_kernels {
public:
  /// Hears once of the first kernel that could not be appended.
  using trouble_listener = std::function<void(const error&)>;

  verified_kernels(node_retrieval to, shown_task_map shown, terms_of_run terms,
                   std::shared_ptr<artifact_store> artifacts, trouble_listener on_trouble);

  /// Returns when live.jsonl is on disk.
  void settle();

  /// A record that was committed just now.
  void follow(wire::Record::Reader record);

  /// All that the run committed before: its retriever has not begun. Errors: those of the store and
  /// of the embedder.
  expected<void> take_up(const store& records, const std::string& run);

private:
  struct verified {
    kernel_example here;      ///< as the run itself may show it
    kernel_example elsewhere; ///< as others may
    std::string run;
    double at = 0;
  };
  std::optional<verified> verify(wire::TurnRecord::Reader turn);
  kernel_terms terms_of(wire::TurnRecord::Reader turn);
  void keep(verified x);

  node_retrieval to_;
  shown_task_map shown_;
  terms_of_run terms_;
  std::shared_ptr<artifact_store> artifacts_;
  trouble_listener on_trouble_;
  /// What prompts of open episodes showed, by group and member: a later turn has read it as well.
  std::map<std::pair<uint32_t, uint32_t>, kernel_terms> read_;
};

} // namespace kernelmill
