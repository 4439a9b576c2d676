#pragma once

// The policy servers of a head: one pool for every run of kind `attached`, and a file below the
// head's root that lets the next head attach the same servers again, however this one ended.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "messages/actors.hpp"
#include "messages/error.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

/// Not thread-safe; it blocks on the pool, which does not block.
class head_policies {
public:
  head_policies(caf::actor_system& system, const std::string& root, const logger& log);
  ~head_policies();

  /// What runs of kind `attached` ask.
  const policy_pool_actor& pool() const { return pool_; }

  /// Attaches the servers of an earlier head. Returns what could not be.
  std::vector<std::string> recover();

  // The verbs. Documents are JSON; what they answer is too.

  /// `url`, and where given `name`, `kind`, `model`, `max_in_flight`, `api_key_env`,
  /// `api_key_file`. Without a kind or a model it asks the server for them.
  expected<nlohmann::ordered_json> attach(const std::string& document);
  expected<nlohmann::ordered_json> detach(const std::string& name, const std::string& document);
  expected<nlohmann::ordered_json> weights(const std::string& name, const std::string& document);
  expected<nlohmann::ordered_json> list();

private:
  expected<void> give(const nlohmann::ordered_json& facts);
  expected<void> save() const;
  nlohmann::ordered_json facts_of(const std::string& name) const;

  caf::actor_system& system_;
  std::string file_;
  policy_pool_actor pool_;
  std::string weights_; ///< last declared for all
  /// By name: url, kind, model, max_in_flight, names of keys, weights; those that drain too.
  std::map<std::string, nlohmann::ordered_json> servers_;
};

} // namespace kernelmill
