#pragma once

// INTERNAL to launch/server/page: what was read of runs, for the documents that are asked for next.
// A reader who goes from view to view, page to page and filter to filter has each run read once.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "launch/server/page/run_facts.hpp"

namespace kernelmill::page {

/// Thread-safe.
class kept_facts {
public:
  using facts_ptr = std::shared_ptr<const run_facts>;

  static constexpr size_t most_otherwise = size_t{128} << 20; ///< bytes: some 200,000 episodes

  /// `version` counts changes that were told to readers. Keeps at most `most` bytes, of the runs
  /// that were asked for last.
  explicit kept_facts(std::function<uint64_t()> version, size_t most = most_otherwise);

  /// What was kept, or else what `read` returns. Of a run that no process writes to it is kept
  /// until a file of the run changes; of another for a fifth of a second, unless a change is told
  /// meanwhile: a client that asks because of an event sees its effect. Errors: those of `read`.
  expected<facts_ptr> of(const run_directory& run,
                         const std::function<expected<run_facts>()>& read);

  size_t bytes() const;

private:
  using clock = std::chrono::steady_clock;

  struct one_run {
    facts_ptr facts;
    size_t bytes = 0;
    std::string stamp;    ///< empty: a process may write to it
    uint64_t version = 0; ///< when reading it began
    clock::time_point until;
    uint64_t used = 0; ///< the greatest was used last
  };

  void keep(const std::string& path, one_run x);

  const std::function<uint64_t()> version_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::map<std::string, one_run> kept_; ///< by the run's path
  size_t bytes_ = 0;
  uint64_t uses_ = 0;
};

} // namespace kernelmill::page
