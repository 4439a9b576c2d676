#pragma once

// The one writer of a store. Commits that arrive while a transaction is on its way to the disk
// wait and share the next one, so that latency stays one transaction and throughput grows with
// the load (one durable commit costs about the same for 1 record and for 64).

#include <chrono>
#include <memory>
#include <vector>

#include "messages/actors.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

struct pending_record {
  Message<wire::Record> record;
  Message<wire::ArtifactBatch> artifacts;
};

/// Where records go. Implementations: store_sink (LMDB); in tests/, memory_sink and fault-injecting
/// ones.
/// Thread safety: commit() from one thread at a time; read() from any thread.
class record_sink {
public:
  virtual ~record_sink() = default;

  /// Makes all of `batch` durable, artifacts before the records that name them. Answers for each
  /// record whether it is new. On error nothing of the batch counts.
  virtual expected<std::vector<bool>> commit(const std::vector<pending_record>& batch) = 0;

  /// The committed records of one episode, texts in full.
  virtual expected<Message<wire::EpisodeHistory>> read(const episode_id& episode) = 0;
};

struct lineage_config {
  size_t batch_records = 1024;
  bool own_thread = true; ///< false only under the deterministic scheduler
  std::chrono::milliseconds sink_deadline = std::chrono::seconds{100};
};

lineage_actor spawn_group_commit_lineage(caf::actor_system& system,
                                         std::shared_ptr<record_sink> sink, lineage_config config);

} // namespace kernelmill
