#pragma once

// The one way out of a store. A licence speaks of a turn's task, of the examples that its prompt
// showed and of the model that answered; a gate asks all three of every turn of a group. What makes
// rows, files or bundles of stored turns takes an admitted_group, and only a gate makes one: a new
// way out cannot forget it. tests/unit/folders/exits_test.py lists the other readers of groups.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/export/licences/permits.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::exports {

/// A group that may leave. Valid as long as the group that the gate was asked about.
class admitted_group {
public:
  const stored_group& operator*() const noexcept { return *group_; }
  const stored_group* operator->() const noexcept { return group_; }

private:
  friend class licence_gate;
  explicit admitted_group(const stored_group& group) noexcept : group_(&group) {}

  const stored_group* group_;
};

/// Why a group does not leave.
struct denial {
  permit may;
  std::string key;          ///< the task, the example or the model
  std::string what;         ///< "the task native/x", "the example kernel:...", "the model m"
  const char* counted = ""; ///< the reason under which `left_out` counts such groups
};

/// Denials of an export, by what they are of.
struct refusal {
  permit may;
  std::string what;
  uint64_t groups = 0;
};
using refusals = std::map<std::string, refusal>;

void note(refusals& to, const denial& why);

/// "licence_forbids" where all groups that were looked at stay in, with the first's reason: an
/// export of nothing is no export.
expected<void> check_any_left(const refusals& x, bool any_left);

/// "licence_forbids", for what cannot be parted.
error to_error(const denial& why, const std::string& failed);

class licence_gate {
public:
  /// `all`: of all runs of an export, since what is refused as a task of one run is refused under
  /// another name, too. They outlive the gate.
  explicit licence_gate(std::vector<const permits*> all);

  tl::expected<admitted_group, denial> admit(const permits& may, const stored_group& x) const;

  /// Of a task alone: for what holds a task's files or figures, and no turn.
  permit of_task(const permits& may, const std::string& task) const;

  /// Errors: "licence_forbids" when every task of the runs is refused, with the first's reason.
  expected<void> check() const;

private:
  std::optional<denial> of_turn(const permits& may, wire::TurnRecord::Reader turn) const;

  std::vector<const permits*> all_;
  std::map<std::string, permit> refused_; ///< by digest
};

} // namespace kernelmill::exports
