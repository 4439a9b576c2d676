#pragma once

// What a proof bundle holds besides what people read: the records of the store as they are, and the
// artifacts that they name, by content. A verifier checks more of them than their hashes: that each
// record is the one that its name says, that a turn's id and its candidate's hash are right, and
// that no artifact is missing.
//   records/g3.e1.t2.capnp, records/g3.e1.capnp, records/g3.capnp, records/run.0.begin.capnp
//   artifacts/ab/cdef...

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "storage/artifacts.hpp"
#include "storage/bundle/bundle_file.hpp"

namespace kernelmill::bundles {

/// "g3.e1.t2", "g3.e1", "g3", "run.0.begin".
std::string name_of(wire::Record::Reader x);

/// SHA-256 of the artifacts that a record names.
std::set<std::string> artifacts_of(wire::Record::Reader x);

std::string record_path(const std::string& name);
std::string artifact_path(const std::string& sha256);

/// Adds the artifacts, each once. Errors: those of the artifacts ("not_found", "store_damaged").
expected<void> add_artifacts(bundle_writer& to, const std::set<std::string>& wanted,
                             const artifact_store& from);

/// Takes the files of a bundle as they pass: records come before artifacts.
/// Thread safety: none.
class proof_check {
public:
  void take(const listed_file& file, std::string_view bytes);

  /// What does not hold of records of `run`, each with the file's name; empty: all does.
  std::vector<std::string> finish(const std::string& run);

  uint64_t turns() const noexcept { return turns_; }
  uint64_t records() const noexcept { return records_; }
  uint64_t artifacts() const noexcept { return there_.size(); }

private:
  struct part { ///< of an artifact that is a completion: the candidate in it
    uint32_t begin = 0, size = 0;
    std::string sha256, record;
  };
  void take_record(const std::string& path, std::string_view bytes);
  void take_turn(const std::string& path, wire::TurnRecord::Reader turn);
  void take_artifact(const std::string& path, std::string_view bytes);
  void say(const std::string& path, const std::string& what);

  std::map<std::string, std::string> runs_; ///< to the first record of each
  std::vector<std::string> wrong_;
  std::map<std::string, std::string> wanted_; ///< artifact to the first record that names it
  std::set<std::string> there_;
  std::multimap<std::string, part> parts_; ///< by the completion's artifact
  uint64_t turns_ = 0, records_ = 0;
};

} // namespace kernelmill::bundles
