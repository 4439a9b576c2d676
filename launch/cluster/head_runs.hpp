#pragma once

// The runs of a head below its root: reads configurations, opens directories and stores, and leaves
// a marker in each run's directory while a head works on it, which is what the next head looks for,
// however this one ended.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/head/run_host.hpp"
#include "launch/config/run_config.hpp"
#include "messages/log/logger.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

/// The stores that this process has open: a view must not open one a second time. Thread-safe.
class open_stores {
public:
  void put(const std::string& run, const std::shared_ptr<const store>& x);
  std::shared_ptr<const store> of(const std::string& run) const; ///< null: it is not open here

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const store>> all_;
};

/// Called for each group right after its record was committed: the run's name, the group's number.
using group_listener = std::function<void(const std::string&, uint32_t)>;

/// The runs below `root`; `log` hears their warnings, `stores` of what they open.
std::shared_ptr<run_host> make_head_runs(std::string root, logger log,
                                         std::shared_ptr<open_stores> stores,
                                         group_listener on_group = {});

/// Reads a configuration that came as text, by the rules of one in a file below `root`.
expected<run_config> read_submitted(const std::string& text, const std::string& root);

} // namespace kernelmill
