#pragma once

// Keeps records in memory: for simulations, and for measuring what durability costs.

#include <map>
#include <mutex>
#include <string>

#include "actors/lineage/store_sink.hpp"

namespace kernelmill {

class memory_sink : public record_sink {
public:
  explicit memory_sink(bool keep = true) : keep_(keep) {
    // nop
  }

  expected<std::vector<bool>> commit(const std::vector<pending_record>& batch) override;
  expected<Message<wire::EpisodeHistory>> read(const episode_id& episode) override;

  /// A copy of what is committed, by key.
  std::map<std::string, Message<wire::Record>> records() const;

private:
  bool keep_;
  mutable std::mutex mutex_;
  std::map<std::string, Message<wire::Record>> records_;
  std::map<std::string, std::string> artifacts_;
};

/// A text that sorts as the store's keys do, e.g. "turn/run/00000003/00000001/00000002".
std::string record_key(wire::Record::Reader record);

} // namespace kernelmill
