#pragma once

// INTERNAL to launch/server/page: what was made of each run that no process writes to, for
// documents over all runs. A change to one run costs making that one again.

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "launch/analysis/library/kernel_library.hpp"
#include "launch/server/page/kept_facts.hpp"
#include "launch/server/page/settled.hpp"
#include "messages/base/json_value.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::page {

/// Thread-safe.
template <class T>
class kept_by_run {
public:
  /// Of each folder below `root` that holds a run, in their order: what was kept, or else what
  /// `make(name)` returns, which is kept until a file of that run changes.
  template <class F>
  std::vector<T> of_all(const std::string& root, const F& make) {
    std::lock_guard guard{mutex_};
    std::vector<T> result;
    std::map<std::string, one_run> still;
    for (const auto& name : list_runs(root)) {
      auto stamp = stamp_of_settled(root, name); // before it is read: a later change counts
      auto known = kept_.find(name);
      bool same = !stamp.empty() && known != kept_.end() && known->second.stamp == stamp;
      result.push_back(same ? known->second.made : make(name));
      if (!stamp.empty()) still[name] = {std::move(stamp), result.back()};
    }
    kept_ = std::move(still); // runs that are gone are not kept
    return result;
  }

private:
  struct one_run {
    std::string stamp;
    T made;
  };

  std::mutex mutex_;
  std::map<std::string, one_run> kept_; ///< by name
};

/// The best kernels of one run; `why` it could not be read, if it could not.
struct kernels_of_run {
  std::string run;
  std::vector<library::kernel> best;
  std::string why;
};

struct kept_runs {
  /// `version` counts changes that were told to readers.
  explicit kept_runs(std::function<uint64_t()> version) : facts(std::move(version)) {}

  /// As kept_facts::of() and read_facts().
  expected<kept_facts::facts_ptr> facts_of(const watch::world& in, const run_directory& run,
                                           const std::function<bool()>& goes_on = {}) {
    return facts.of(run, [&] { return read_facts(in, run, goes_on); });
  }

  kept_facts facts;
  kept_by_run<nlohmann::ordered_json> rows; ///< of the list of runs
  kept_by_run<kernels_of_run> kernels;
};

} // namespace kernelmill::page
