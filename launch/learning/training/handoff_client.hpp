#pragma once

// The training's client of the HANDOFF: orders, leases, acknowledgements, commits. A trainer sends
// the same requests over HTTP. Each call blocks.

#include <string>
#include <vector>

#include "actors/handoff/handoff.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::training {

/// Groups that one consumer holds.
struct batch {
  uint64_t lease = 0;
  std::vector<nlohmann::json> groups; ///< each with `id` and `rows`
  bool over = false;                  ///< nothing is left to give
};

class handoff_client {
public:
  explicit handoff_client(handoff::handoff_actor handoff) : handoff_(std::move(handoff)) {}

  /// The same order again is one order. Errors: those of configurations; "order_exists".
  expected<void> order(const std::string& id, const nlohmann::json& config);

  /// Rejects earlier users of the consumer's name: groups learned after `step` are given again.
  expected<uint64_t> roll_back(const std::string& consumer, int64_t step);

  /// Waits a second at most; a lease of 0 when there was none in it.
  expected<batch> next(const std::string& order, const std::string& consumer, uint64_t generation);

  expected<void> ack(uint64_t lease, int64_t step);
  expected<void> commit(const std::string& consumer, uint64_t generation, int64_t step);

  /// Declares a version; with a path `server`, a run's `policy` as JSON, is made to load it first.
  expected<void> declare(const std::string& version, const std::string& path,
                         const std::string& server);

private:
  template <class What>
  expected<nlohmann::json> ask(What what);

  handoff::handoff_actor handoff_;
  uint64_t asked_ = 0;
};

} // namespace kernelmill::training
