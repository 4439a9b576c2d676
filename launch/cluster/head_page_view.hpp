#pragma once

// The view of this process's head for this process's page: the folder of its runs, their stores,
// and its nodes' snapshots. The page asks the HEAD for all of it by messages.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <caf/fwd.hpp>

#include "launch/analysis/watch/world.hpp"
#include "launch/cluster/head_runs.hpp"
#include "messages/actors.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

/// The view of a query to the HEAD that hands what it knows to head_page_view::take(), for the
/// page's own views; its document is empty.
inline constexpr const char* page_view_query = "sight";

/// Thread-safe. Keeps the latest answer for a moment, since a page asks for the same many times.
class head_page_view {
public:
  using json = nlohmann::ordered_json;

  head_page_view(std::string root, std::shared_ptr<open_stores> stores);

  /// Sets the head to ask. Called once, before anything else.
  void ask_of(caf::actor_system& system, const head_actor& head);

  /// What the HEAD knows, from its look() with `page_view_query`.
  void take(const json& status, const Message<wire::Snapshot>& nodes);

  /// Sends one user command and waits for its document. Errors: the head's own,
  /// "head_unreachable".
  expected<json> ask(const std::string& verb, const std::string& subject,
                     const std::string& document);

  /// Where views look. REQUIRES: this outlives it.
  watch::world world();

private:
  struct seen {
    json status;
    Message<wire::Snapshot> nodes;
  };
  expected<seen> look();

  std::string root_;
  std::shared_ptr<open_stores> stores_;
  caf::actor_system* system_ = nullptr;
  head_actor head_;
  std::mutex asking_; ///< one thread asks, others wait for the same answer
  std::mutex mutex_;  ///< of what follows
  seen latest_;
  std::chrono::steady_clock::time_point at_;
};

} // namespace kernelmill
