#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "actors/lineage/lineage.hpp"
#include "storage/artifacts.hpp"
#include "storage/store.hpp"

namespace kernelmill {

/// Records to LMDB, artifacts to the file system.
class store_sink final : public record_sink {
public:
  store_sink(std::shared_ptr<store> records, std::shared_ptr<artifact_store> artifacts);

  expected<std::vector<bool>> commit(const std::vector<pending_record>& batch) override;
  expected<Message<wire::EpisodeHistory>> read(const episode_id& episode) override;

  /// Calls `tell` with each new record once it is durable, on the committing thread.
  void on_fresh(std::function<void(wire::Record::Reader)> tell) { tell_ = std::move(tell); }

private:
  std::shared_ptr<store> records_;
  std::shared_ptr<artifact_store> artifacts_;
  std::function<void(wire::Record::Reader)> tell_;
};

/// Keeps records in memory: for simulations, and for measuring what durability costs.
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
