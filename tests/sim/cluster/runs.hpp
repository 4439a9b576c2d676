#pragma once

// Runs of a simulated head: real run, episodes, governance and group commit over the simulated
// disk. In place of launch/cluster/head_runs.cpp, which knows configurations and LMDB.

#include <set>

#include "actors/head/run_host.hpp"
#include "gpu/task/task.hpp"
#include "tests/sim/cluster/machine.hpp"

namespace kernelmill::sim {

class sim_runs final : public run_host, public std::enable_shared_from_this<sim_runs> {
public:
  sim_runs(machine& on, std::shared_ptr<sim_disk> disk, task_ptr what);

  // -- of run_host; a submitted document is the run's name
  expected<head_run_ptr> read(const std::string& name) override;
  expected<head_run_ptr> find(const std::string& name) override;
  std::vector<std::string> left_over() override;

  std::shared_ptr<bool> alive;     ///< the head that has them now
  std::function<void()> kill_head; ///< for faults that strike in a commit

  bool is_known(const std::string& name) const { return known_.contains(name); }
  bool is_committing() const { return committing_ > 0; }
  void kill_all();

  // -- fairness
  void asked_for(const envelope& where, char kind);
  void given_out(const envelope& where, char kind);
  uint32_t overtaken() const { return overtaken_; }

private:
  friend class sim_run;
  friend class sim_sink;
  struct wish {
    uint64_t number = 0;
    uint32_t overtaken = 0;
  };
  using wish_key = std::tuple<uint64_t, uint64_t, uint64_t, char>;

  machine& on_;
  std::shared_ptr<sim_disk> disk_;
  task_ptr task_;
  std::set<std::string> known_;
  std::vector<caf::actor> actors_; ///< of the head of now
  std::map<wish_key, wish> wishes_;
  uint64_t next_wish_ = 0;
  uint32_t overtaken_ = 0;
  uint32_t committing_ = 0;
};

} // namespace kernelmill::sim
