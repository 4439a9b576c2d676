#pragma once

// What `kernelmill fsck --repair` does. Nothing is thrown away: what is replaced goes to a folder
// first. Private to storage/fsck.

#include <map>
#include <set>
#include <string>

#include "storage/artifacts.hpp"
#include "storage/fsck/record_check.hpp"

namespace kernelmill::fsck {

/// A folder for what is put aside, made when the first thing is.
class quarantine {
public:
  explicit quarantine(const run_directory& run);
  /// Moves a file there, under its name below the folder of the run or store.
  expected<void> take(const std::string& path);
  /// The same by a second name: the first stays until it is replaced.
  expected<void> keep(const std::string& path);
  const std::string& folder() const noexcept { return made_; }

private:
  expected<std::string> place_for(const std::string& path);
  std::string root_, folder_, made_;
};

/// Makes data.mdb anew from whole records. The old one is put aside.
expected<void> rebuild_store(const run_directory& run, const contents& in, quarantine& aside);

/// The artifacts that records name: by hash, the record that names it.
std::map<std::string, std::string> named_artifacts(const contents& in);

/// Looks for texts of these hashes in the run's traces, and stores those that it finds.
std::set<std::string> restore_from_traces(const run_directory& run,
                                          const std::set<std::string>& wanted,
                                          artifact_store& artifacts);

} // namespace kernelmill::fsck
