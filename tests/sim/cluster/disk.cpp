#include "tests/sim/cluster/disk.hpp"

namespace kernelmill::sim {

expected<std::vector<bool>> sim_disk::commit(const std::vector<pending_record>& batch,
                                             disk_state how) {
  if (how == disk_state::error)
    return infrastructure_error("io_error", "failed to commit: input/output error");
  if (how == disk_state::full)
    return infrastructure_error("disk_full", "failed to commit: no space left on device");
  if (how == disk_state::dies_before)
    return infrastructure_error("io_error", "the head has died before this");
  auto written = batch;
  if (broken_ == defect::early_acknowledgement) {
    std::swap(written, unwritten_);
    (void)durable_.commit(written);
    return std::vector<bool>(batch.size(), true);
  }
  if (broken_ == defect::forgotten_record && batch.size() > 1) {
    written.pop_back();
    (void)durable_.commit(written);
    return std::vector<bool>(batch.size(), true);
  }
  auto fresh = durable_.commit(written);
  if (how == disk_state::unsure || how == disk_state::dies_after)
    return infrastructure_error("io_error", "failed to commit: input/output error");
  if (fresh && broken_ == defect::turn_counted_twice) fresh->assign(batch.size(), true);
  return fresh;
}

expected<Message<wire::EpisodeHistory>> sim_disk::read(const episode_id& x) {
  auto found = durable_.read(x);
  if (!found || broken_ != defect::turn_counted_twice) return found;
  auto all = found->open();
  if (all->getFinished() || all->getTurns().size() == 0) return found;
  return build<wire::EpisodeHistory>([&](wire::EpisodeHistory::Builder to) {
    auto turns = to.initTurns(all->getTurns().size() - 1);
    for (unsigned i = 0; i < turns.size(); ++i) turns.setWithCaveats(i, all->getTurns()[i]);
  });
}

void sim_disk::acknowledge(const std::string& key, bool fresh, double when) {
  auto& x = acknowledged_[key];
  if (x.fresh + x.again == 0) x.first = when;
  ++(fresh ? x.fresh : x.again);
}

} // namespace kernelmill::sim
