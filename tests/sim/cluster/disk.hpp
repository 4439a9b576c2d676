#pragma once

// The head's disk, which outlives every head: what is durable, and what was acknowledged of it.

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/oracles/memory_sink.hpp"
#include "tests/sim/cluster/faults.hpp"

namespace kernelmill::sim {

/// What one commit is to meet.
enum class disk_state : unsigned char {
  well,
  error,
  full,
  unsure,
  dies_before, ///< the head dies, and nothing was written
  dies_after,  ///< the head dies, and all was written
};

class sim_disk {
public:
  explicit sim_disk(defect broken) : broken_(broken) {
    // nop
  }

  expected<std::vector<bool>> commit(const std::vector<pending_record>& batch, disk_state how);
  expected<Message<wire::EpisodeHistory>> read(const episode_id& x);

  /// A head has heard that a record is durable, at a virtual time in seconds.
  void acknowledge(const std::string& key, bool fresh, double when);

  /// The head is gone, and with it what was not written yet.
  void lose_unwritten() { unwritten_.clear(); }

  std::map<std::string, Message<wire::Record>> records() const { return durable_.records(); }

  struct acknowledgement {
    unsigned fresh = 0, again = 0;
    double first = 0;
  };
  const std::map<std::string, acknowledgement>& acknowledged() const { return acknowledged_; }

  std::set<std::string> marked; ///< runs that the next head takes up

private:
  defect broken_;
  memory_sink durable_;
  std::vector<pending_record> unwritten_;
  std::map<std::string, acknowledgement> acknowledged_;
};

} // namespace kernelmill::sim
