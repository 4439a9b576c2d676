#pragma once

// What a policy server can do, found out by asking it: a few requests, a few dozen tokens. Each
// capability comes with what was seen and with what a trainer loses without it.

#include <optional>
#include <string>
#include <vector>

#include "actors/policy_client/policy_config.hpp"

namespace kernelmill {

struct server_capability {
  std::string name;        ///< "token_ids"
  std::optional<bool> has; ///< nothing: it could not be told
  std::string seen;        ///< in one line
  std::string without;     ///< what is lost
};

struct server_report {
  server_kind kind = server_kind::openai;
  bool kind_was_found = false; ///< else it was given
  std::string model;
  std::vector<std::string> models;
  std::string version;
  std::string weight_version;
  std::vector<server_capability> capabilities;
};

/// Asks the server of `config`; an empty model means the first that it lists. Fails when no server
/// answers, when it refuses the key, or when no model is known. Blocks.
expected<server_report> probe_server(const policy_config& config, std::optional<server_kind> kind,
                                     uint32_t timeout_ms);

} // namespace kernelmill
