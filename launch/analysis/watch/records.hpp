#pragma once

// Records of a run for a reader without access to its folder. The reader commits them to a store
// of its own, and everything that reads a run reads that one.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/analysis/watch/world.hpp"
#include "messages/base/json_value.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill::watch {

/// A part of a run: as many groups, from number `from` on, as go into one answer. `what` names a
/// run, a group, an episode or a turn. `texts`: with prompts, completions and logs; else these and
/// the ids of tokens are left out. {what, from, texts}
expected<json> records_view(const world& in, const json& query);

struct remote_records {
  std::string run;
  std::string directory; ///< on the other machine
  json config, manifest;
  std::vector<Message<wire::Record>> records;
  std::vector<std::pair<std::string, std::string>> texts; ///< by SHA-256
  std::optional<uint64_t> next;                           ///< where the next part begins
};

/// Reads such an answer. Errors: "malformed_message".
expected<remote_records> read_remote_records(const json& document);

} // namespace kernelmill::watch
