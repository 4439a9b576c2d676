#pragma once

// The keys that clients of a server may have it send to policy servers. A client names an entry of
// the operator's list; never a variable or a file of the server's machine. A key goes to the
// addresses of its entry and to no other.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "actors/policy_client/policy_config.hpp"

namespace kernelmill {

struct policy_key {
  std::string name;
  std::string base_url; ///< it goes to this address and to what is below its path
  std::string api_key_env;
  std::string api_key_file;
};

class policy_keys {
public:
  policy_keys() = default;
  explicit policy_keys(std::vector<policy_key> all) : all_(std::move(all)) {}

  /// The entry of this name, for a server at this address; an empty address means the entry's own.
  /// Errors: "policy_key_refused".
  expected<policy_key> find(const std::string& name, const std::string& base_url) const;

  /// Whether an entry has this source and this address. Errors: "policy_key_refused".
  expected<void> check(const std::string& environment_variable, const std::string& file,
                       const std::string& base_url) const;

private:
  std::string names() const;

  std::vector<policy_key> all_;
};

/// Reads {"keys": [{"name": "lab", "base_url": "https://lab.example/v1", "api_key_env": "LAB"}]},
/// and reads each key once, so that a missing one is known at the start. Errors: "bad_policy_keys",
/// and those of load_secret().
expected<policy_keys> load_policy_keys(const std::string& path);

/// Whether an address is `entry` or below its path: the same scheme, host and port.
bool is_below_address(const std::string& entry, const std::string& url);

/// A policy server that a client names, and its key; null: none.
struct named_server {
  policy_config config;
  secret_ptr key;
};

/// The one reader of such a server: `kind`, `base_url`, and the client's own `api_key` or the name
/// of one of the operator's as `key`. `api_key_env` and `api_key_file` are what a name of `keys`
/// stood for before. Errors: "bad_request", "policy_key_refused" and those of load_secret().
expected<named_server> read_named_server(const nlohmann::json& x, const policy_keys& keys);

} // namespace kernelmill
