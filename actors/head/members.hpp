#pragma once

// The nodes of a cluster as plain values: what each offers, which lane a run goes to, and which
// nodes were lost.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/cluster.capnp.h"
#include "messages/error.hpp"

namespace kernelmill {

/// A node as others see it.
struct member_facts {
  std::string name;
  std::string backend;
  std::string architecture;
  std::string hardware;
  std::string toolchain;
  uint32_t compilers = 0;
  std::vector<std::string> slots;
  bool sandbox_complete = true;
  std::vector<std::string> layers{}; ///< of the sandbox, that stand there
  bool draining = false;
  double since = 0; ///< it joined, or was lost; seconds since 1970

  /// What is built in a lane runs in it: "cuda/sm_90".
  std::string lane() const { return backend + "/" + architecture; }
};

/// What builds and evaluates in a lane, for the manifest of a run there.
struct lane_facts {
  std::string lane;
  std::string hardware;
  std::string toolchain;
  std::vector<std::string> slots; ///< "NODE SLOT"
  bool sandbox_complete = true;   ///< no layer is missing, on any node of it
};

/// The nodes that are in the cluster, and those that were. A value; the HEAD owns it.
class roster {
public:
  void put(const member_facts& x);

  /// Forgets a node; one that was not draining is lost, at `now`.
  void remove(const std::string& name, double now);

  const member_facts* find(const std::string& name) const;
  const std::map<std::string, member_facts>& members() const { return members_; }

  /// How often a node left without a word.
  uint64_t lost() const { return lost_; }
  /// Those of them that have not come back, a hundred at most; the latest last.
  const std::vector<member_facts>& lost_members() const { return lost_members_; }

  /// The lane with the most slots for a backend, of nodes where all of the sandbox's layers stand
  /// that a run requires; "auto" is a GPU's where there is one, as on a single machine. Errors:
  /// no_nodes, sandbox_layer_missing.
  expected<std::string> choose_lane(const std::string& backend,
                                    const std::vector<std::string>& required = {}) const;

  /// What those nodes of a lane offer now; there may be none.
  lane_facts facts_of(const std::string& lane, const std::vector<std::string>& required = {}) const;

  /// Nodes of a lane that get no job of a run which requires these layers, with those that each
  /// lacks.
  std::map<std::string, std::vector<std::string>>
  unfit_nodes(const std::string& lane, const std::vector<std::string>& required) const;

private:
  std::map<std::string, member_facts> members_;
  std::vector<member_facts> lost_members_;
  uint64_t lost_ = 0;
};

/// What a node that joins at `now` offers.
member_facts facts_of(wire::NodeOffer::Reader x, double now);

/// Returns "node n1 lacks seccomp, landlock".
std::string lack_text(const std::string& node, const std::vector<std::string>& layers);

/// Returns "cpu/x86-64, 2 compilers, slots 0, 1".
std::string offer_text(const member_facts& x);

} // namespace kernelmill
