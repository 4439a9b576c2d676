#pragma once

// What the licences of a run's sources say of an export. The caller decides and passes the answers
// in. What is not among them is refused.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::exports {

struct permit {
  bool allowed = false;
  std::string source;  ///< empty: none is known
  std::string licence; ///< its name
  std::string url;
  std::string terms;     ///< that this use needs; accepted where it is allowed
  std::string reason;    ///< why not
  std::string hint;      ///< what can be done about it
  std::string digest;    ///< of the task, for tasks of one content and two names
  bool shared = true;    ///< may be passed on, too
  bool confirmed = true; ///< a user has read the licence; else it is known by hearsay
};

struct permits {
  std::map<std::string, permit> tasks; ///< by id
  std::map<std::string, permit>
      examples;   ///< by id, "kernel:TURN", or "kernel:SOURCE/*": those that differ from `kernels`
  permit kernels; ///< of all other retrieved kernels
  permit cards;
  std::vector<std::pair<std::string, permit>> models; ///< by globs of names
  std::optional<permit> answers;        ///< of the run's model, where a source speaks of it
  std::optional<permit> shared_answers; ///< of a fork's first turns, which its origin's model wrote
  uint32_t shared_turns = 0;            ///< how many these are

  /// Of a retrieved example, by its id.
  const permit& of_example(const std::string& id) const;

  /// Of a model's answers: the first that is refused, else one that fits. Null: no source speaks of
  /// it, and the answers belong to the owner of the model.
  /// `shared`: in a turn that a fork has from its origin.
  const permit* of_model(const std::string& name, bool shared) const;
};

/// Errors: "licence_forbids", where one of the tasks may not be used so: for what cannot be parted.
expected<void> check_all(const permits& x, const std::string& failed);

/// Of a task by its id; one without a decision is refused.
permit permit_of(const permits& x, const std::string& task);

} // namespace kernelmill::exports
