#pragma once

// The candidates of one episode as a graph without circles. In mode `tools` the records have its
// nodes; in mode `refine` each turn's transition tells where its candidate came from. Plain
// functions of records: what a record says wrongly is reported, and the rest is shown.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill {

struct candidate_speedup {
  double estimate = 0, low = 0, high = 0;
};

struct candidate_entry {
  std::string id;     ///< "c0"; numbered in their order in mode `refine`
  std::string parent; ///< of an entry before this one; empty: it is a root
  std::string sha256, role, origin;
  std::string status;     ///< the last mark: "build_failed", "benchmarked", ...; empty: not tried
  std::string patch_kind; ///< of the change from the parent; empty: none can be told
  std::string summary;
  uint32_t depth = 0;
  uint32_t turn = 0; ///< that made it
  std::string call;  ///< the id of the call that made it; empty: the turn itself did
  std::string tool;  ///< of that call
  std::optional<bool> right;
  std::optional<candidate_speedup> speedup;
  bool best = false;      ///< of those that are right: the highest lower bound, else the newest
  bool dominated = false; ///< even its upper bound lies below the lower bound of the best
  bool active = false;    ///< the next turn begins with it

  size_t record = 0;            ///< position of its turn among the records
  std::optional<unsigned> node; ///< among the turn's nodes; none: it is the turn's own candidate
};

struct candidate_graph {
  std::vector<candidate_entry> entries; ///< parents come before their children
  std::vector<std::string> problems;    ///< of records that contradict themselves

  const candidate_entry* find(std::string_view id) const;
};

/// Of the turns of one episode, in order.
candidate_graph graph_of(const std::vector<Message<wire::Record>>& turns);

/// Reads the source of a candidate. `turns` are those that the graph was made of. Errors: those of
/// the artifacts.
expected<std::string> source_of(const candidate_entry& x,
                                const std::vector<Message<wire::Record>>& turns,
                                const artifact_store& artifacts);

} // namespace kernelmill
