#pragma once

// The head of a cluster as a process.

#include <functional>
#include <stop_token>
#include <string>

#include "launch/cluster/link.hpp"
#include "messages/error.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

struct head_options {
  network_address listen{"127.0.0.1", default_head_port};
  link_options link;
  std::string root = "runs"; ///< folder that holds the runs
  std::function<void(const network_address&)> on_listening;
  logger log;
};

/// Serves until `stop` is requested; the runs in progress stay resumable, and the next head of the
/// same root goes on with them. Whoever calls it ends the process with leave().
expected<void> run_head(const head_options& options, std::stop_token stop);

} // namespace kernelmill
