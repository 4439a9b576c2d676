#pragma once

// INTERNAL to storage/restore/: the records that lines of traces.jsonl tell of, the inverse of
// storage/journal/projections.hpp. What a line does not say stays empty in its record, and a turn
// says so in a finding.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "storage/artifacts.hpp"

namespace kernelmill {

/// The rule of the finding that every restored turn has.
inline constexpr const char* restored_rule = "restored";

/// What no line says of a turn, for people.
inline constexpr const char* not_in_traces =
    "the compiler's log and version, single cases, the output, the profile, the device, the seed, "
    "and seconds within an evaluation";

/// Texts too long for their records.
class long_texts {
public:
  void put(wire::Content::Builder into, const std::string& text);
  void take(long_texts&& other);

  /// Returns when all are on disk. Errors: those of artifact_store::put.
  expected<void> store(artifact_store& into);

private:
  struct entry {
    std::string sha256, text;
  };
  std::vector<entry> entries_;
};

/// The record of a line of kind `turn`, whose long texts go to `texts`. Throws a std::exception
/// that says which key is missing or wrong.
Message<wire::Record> restored_turn(const nlohmann::ordered_json& line, long_texts& texts);

/// The same of a line of kind `episode`.
Message<wire::Record> restored_episode(const nlohmann::ordered_json& line);

} // namespace kernelmill
