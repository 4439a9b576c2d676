#pragma once

// A node of a cluster as a process: starts its slots, joins the head, and joins it again whenever
// the connection is lost.

#include <stop_token>
#include <string>
#include <vector>

#include "launch/cluster/link.hpp"
#include "launch/config/run_config.hpp"
#include "messages/error.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

struct member_options {
  network_address head;
  link_options link;
  std::string name;         ///< empty: the host's
  run_config config;        ///< its sections `compile` and `evaluation`
  std::string gpus = "all"; ///< "all", "none", "0,2"
  std::string architecture; ///< with no GPUs: compile for this one and judge nothing
  logger log;
};

/// Serves until `stop` is requested; then it drains: takes nothing new, finishes what it has, and
/// returns. Also returns when the head drains it.
expected<void> run_member(const member_options& options, std::stop_token stop);

} // namespace kernelmill
