#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/lineage/lineage.hpp"
#include "actors/lineage/record_follower.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

/// Records to LMDB, artifacts to the file system.
class store_sink final : public record_sink {
public:
  store_sink(std::shared_ptr<store> records, std::shared_ptr<artifact_store> artifacts);

  expected<std::vector<bool>> commit(const std::vector<pending_record>& batch) override;
  expected<Message<wire::EpisodeHistory>> read(const episode_id& episode) override;

  /// Calls `tell` with each new record once it is durable, in the order of commits, on a thread of
  /// its own, and `rest` there when none is left to tell of. Before the first commit.
  void on_fresh(record_follower::listener tell, std::function<void()> rest = {});

  /// Returns when all that is committed is told.
  void settle();

private:
  std::shared_ptr<store> records_;
  std::shared_ptr<artifact_store> artifacts_;
  std::unique_ptr<record_follower> follower_;
};

/// Finds the text of an artifact.
using text_lookup = std::function<expected<std::string>(wire::Content::Reader)>;

/// The history that the records of one episode make, with the text in place of each artifact.
expected<Message<wire::EpisodeHistory>>
history_of(const std::vector<Message<wire::Record>>& records, const text_lookup& look_up);

} // namespace kernelmill
