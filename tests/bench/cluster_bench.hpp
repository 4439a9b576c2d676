#pragma once

// The parts of cluster_bench: a node that waits instead of working, the load, the measurement.

#include <chrono>
#include <cstdint>
#include <string>

#include "actors/cluster/cluster.hpp"
#include "launch/cluster/link.hpp"
#include "messages/error.hpp"

namespace kernelmill::bench {

inline constexpr std::chrono::milliseconds build_time{1};
inline constexpr std::chrono::milliseconds evaluate_time{20};
inline constexpr const char* lane_backend = "bench";
inline constexpr const char* lane_architecture = "virtual";

/// What was typed; a child gets all of it as words again.
struct settings {
  std::string role = "all"; ///< or "case", "node"
  std::string nodes = "1,2,4,8";
  std::string tls = "both";
  std::string load = "both";
  std::string directory; ///< of a case
  uint32_t slots = 2;
  uint32_t library_kb = 100;
  double seconds = 6;
  uint16_t port = 0;   ///< of the head
  uint32_t number = 0; ///< of a node
};

[[noreturn]] void give_up(const std::string& why);

template <class T>
T must(expected<T> x) {
  if (!x) give_up(render(x.error()));
  return std::move(*x);
}

link_options link_of(const settings& x);

/// A process of its own, until the head is gone.
[[noreturn]] void serve_node(const settings& x);

/// Build and evaluate, over and over: what an episode asks of the cluster, without an episode.
void start_stream(caf::actor_system& system, const cluster_actor& queues, uint32_t live);

/// The real thing: run, episodes, governance, and a durable store.
void start_episodes(caf::actor_system& system, const cluster_actor& queues, uint32_t live,
                    const std::string& directory);

} // namespace kernelmill::bench
