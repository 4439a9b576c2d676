#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/policy_client/adaptive_window.hpp"
#include "actors/policy_client/http/http_transport.hpp"
#include "actors/policy_client/protocol/openai_protocol.hpp"
#include "messages/defaults.hpp"
#include "messages/error.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

/// One attached policy server. The key itself is never a part of it.
struct policy_config {
  std::string base_url; ///< "http://host:port/v1"; an empty path means /v1
  std::string model;
  std::string api_key_env;  ///< name of an environment variable; empty: none
  std::string api_key_file; ///< path of a file; empty: none
  server_kind kind = server_kind::openai;
  bool stream = false;
  bool exact_tokens = false; ///< ask in token ids and go on from those that were sampled, also
                             ///< where a request does not say so
  /// Requests at the server at once; the rest wait here.
  uint32_t max_in_flight = defaults::policy_max_in_flight;
  uint32_t first_window = adaptive_window::default_first; ///< of those, before the server was tried
  /// Deadline of a request that names none, retries included.
  uint32_t request_timeout_ms = defaults::policy_timeout_ms;
  uint32_t connect_timeout_ms = defaults::policy_connect_timeout_ms;
  /// Longest silence within a stream; 0: no limit.
  uint32_t stall_ms = defaults::policy_stall_ms;
  /// How long a server that was never reached may stay away before that is the configuration's
  /// fault, at the latest at a request's deadline; 0: always the infrastructure's.
  uint32_t first_contact_ms = defaults::policy_first_contact_ms;
  uint32_t breaker_threshold = 8; ///< failures in a row that open the circuit; 0: never
  uint64_t max_response_bytes = defaults::policy_max_response_bytes;
  uint32_t keep_alive_s = 3; ///< idle connections older than this are not used again
  std::string ca_file;       ///< certificates to trust; empty: the system's
  std::string max_tokens_field = "max_tokens";
  std::string request_salt; ///< ends every request id; set it when runs of one name
                            ///< share a server, and keep it when a run is resumed

  logger log; ///< hears of retries, and of a server that is away

  /// In place of HTTP, for tests and the simulation; null: an http_client of its own.
  std::shared_ptr<http_transport> transport;
};

/// Checks everything that can be checked without the server, also that the key can be read. Texts
/// name the key as `policy.<key>`.
expected<void> validate(const policy_config& config);

/// Returns the address of e.g. "chat/completions".
std::string endpoint(const policy_config& config, std::string_view path);

/// Returns the address of a route that stands beside the version path, e.g. "tokenize".
std::string root_endpoint(const policy_config& config, std::string_view path);

} // namespace kernelmill
