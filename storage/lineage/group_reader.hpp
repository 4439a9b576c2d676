#pragma once

// Reads a run group by group, each in a short transaction of its own: an export of a run in
// progress never keeps LMDB from using freed pages again.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/lineage/store.hpp"

namespace kernelmill {

struct stored_episode {
  uint32_t member = 0;
  std::vector<Message<wire::Record>> turns; ///< in order
  std::optional<Message<wire::Record>> end; ///< the episode's own record
};

struct stored_group {
  uint32_t group = 0;
  std::vector<stored_episode> episodes;     ///< in order of members
  std::optional<Message<wire::Record>> end; ///< the group's own record
};

/// Copies the records of a group out of the store.
expected<stored_group> read_group(const store& from, const std::string& run, uint32_t group);

/// The same for one episode; no turns and no end when there is none.
expected<stored_episode> read_episode(const store& from, const std::string& run, uint32_t group,
                                      uint32_t member);

/// Visits every group in order; the first error ends it. kj::Exception of a reader that `visit`
/// opens becomes "store_damaged".
using group_visitor = std::function<expected<void>(const stored_group&)>;
expected<void> for_each_group(const store& from, const std::string& run,
                              const group_visitor& visit);

} // namespace kernelmill
