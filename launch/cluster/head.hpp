#pragma once

// The head of a cluster as a process.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/analysis/watch/world.hpp"
#include "launch/cluster/link.hpp"
#include "messages/error.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

/// What a head lets other code of its own process see and do.
struct head_window {
  watch::world world;
  /// Sends one command of users': verb, subject, document.
  std::function<expected<nlohmann::ordered_json>(const std::string&, const std::string&,
                                                 const std::string&)>
      ask;
};

struct head_options {
  network_address listen{"127.0.0.1", default_head_port};
  link_options link;
  std::string root = "runs"; ///< folder that holds the runs
  std::function<void(const network_address&)> on_listening;

  /// Called before nodes can join; what it returns is kept until the head ends, and an error ends
  /// the head. May be empty.
  std::function<expected<std::shared_ptr<void>>(head_window)> on_window;
  logger log;
};

/// Serves until `stop` is requested; the runs in progress stay resumable, and the next head of the
/// same root goes on with them. The caller ends the process with leave().
expected<void> run_head(const head_options& options, std::stop_token stop);

} // namespace kernelmill
