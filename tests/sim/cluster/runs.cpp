#include "tests/sim/cluster/runs.hpp"

#include "actors/governance/governance.hpp"
#include "actors/run/run.hpp"
#include "tests/sim/cluster/cluster.hpp"

namespace kernelmill::sim {

using namespace std::chrono_literals;

/// The disk as one head has it.
class sim_sink final : public record_sink {
public:
  sim_sink(std::shared_ptr<sim_runs> runs) : runs_(std::move(runs)), alive_(runs_->alive) {
    // nop
  }

  expected<std::vector<bool>> commit(const std::vector<pending_record>& batch) override {
    auto how = state();
    auto result = runs_->disk_->commit(batch, how);
    if (how == disk_state::dies_after || (how == disk_state::dies_before && *alive_)) {
      runs_->on_.mark(how == disk_state::dies_after ? "the head dies after a write"
                                                    : "the head dies before a write");
      runs_->kill_head();
    }
    return result;
  }

  expected<Message<wire::EpisodeHistory>> read(const episode_id& x) override {
    return runs_->disk_->read(x);
  }

private:
  disk_state state() {
    auto& on = runs_->on_;
    if (!*alive_) return disk_state::dies_before;
    if (on.on(fault_kind::killed_writing, 0) && on.upto(4) == 0)
      return on.amount(fault_kind::killed_writing, 0) % 2 == 0 ? disk_state::dies_after
                                                               : disk_state::dies_before;
    if (on.on(fault_kind::disk_full, 0)) return disk_state::full;
    if (on.on(fault_kind::disk_error, 0)) return disk_state::error;
    if (on.on(fault_kind::disk_unsure, 0)) return disk_state::unsure;
    return disk_state::well;
  }

  std::shared_ptr<sim_runs> runs_;
  std::shared_ptr<bool> alive_;
};

namespace {

constexpr uint32_t slowest_sync_ms = 50;

/// Stands before the one writer and notes what it acknowledges.
lineage_actor::behavior_type noting_lineage(lineage_actor::pointer self, lineage_actor inner,
                                            machine* on, std::shared_ptr<sim_disk> disk,
                                            std::shared_ptr<bool> alive, uint32_t* committing) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [=](atom::commit, const envelope& where, const Message<wire::Record>& record,
          const Message<wire::ArtifactBatch>& artifacts) -> caf::result<bool> {
        auto answer = self->make_response_promise<bool>();
        ++*committing;
        self->request(inner, 10min, atom::commit_v, where, record, artifacts)
            .then(
                [=](bool fresh) mutable {
                  // A sync takes its time, and the head may die in it.
                  on->after(milliseconds{on->upto(slowest_sync_ms)}, [=]() mutable {
                    if (!*alive) return;
                    --*committing;
                    if (!fresh) on->mark("a record was there already");
                    disk->acknowledge(record_key(*record.open()), fresh, on->now());
                    answer.deliver(fresh);
                  });
                },
                [=](caf::error& why) mutable {
                  --*committing;
                  answer.deliver(std::move(why));
                });
        return answer;
      },
      [=](atom::read, const Message<wire::ReadQuery>& query) {
        return self->delegate(inner, atom::read_v, query);
      },
  };
}

/// Stands before a lane's queues and notes who asks.
cluster_actor::behavior_type noting_queues(cluster_actor::pointer self, cluster_actor inner,
                                           machine* on, std::shared_ptr<sim_runs> runs) {
  // A queue that serves the first run alone, while that asks, is none that a user would call fair.
  auto unfair = [on, runs](const envelope& where) {
    return on->is(defect::unfair_queue) && where.run == run_number(run_names[1]) &&
           on->now() < 60 && runs->is_known(run_names[0]);
  };
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [=](atom::build, const envelope& where,
          const Message<wire::BuildRequest>& request) -> caf::result<Message<wire::BuildResult>> {
        runs->asked_for(where, 'b');
        auto answer = self->make_response_promise<Message<wire::BuildResult>>();
        auto ask = [=]() mutable {
          self->request(inner, 1440min, atom::build_v, where, request)
              .then([answer](const Message<wire::BuildResult>& x) mutable { answer.deliver(x); },
                    [answer](caf::error& why) mutable { answer.deliver(std::move(why)); });
        };
        if (unfair(where))
          on->after(60s, [=]() mutable { ask(); });
        else
          ask();
        return answer;
      },
      [=](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request) {
        runs->asked_for(where, 'e');
        return self->delegate(inner, atom::evaluate_v, where, request);
      },
      [=](atom::profile, const envelope& where, const Message<wire::ProfileRequest>& request) {
        return self->delegate(inner, atom::profile_v, where, request);
      },
      [](atom::lease, const compiler_actor&, uint32_t) {},
      [](atom::lease, const gpu_runner_actor&, uint32_t) {},
      [](atom::lease, const profiler_actor&, uint32_t) {},
      [](atom::lease, const caf::actor_addr&, uint32_t) {},
      [](atom::retire, const caf::actor_addr&) {},
      [](atom::cancel, const envelope&) {},
      [](atom::tick) {},
  };
}

/// Pays what no candidate has done.
governance_actor::behavior_type paying_governance(governance_actor::pointer self,
                                                  governance_actor inner) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [=](atom::judge, const envelope& where, const Message<wire::TurnFacts>& facts) {
        auto answer = self->make_response_promise<Message<wire::Verdict>>();
        self->request(inner, 1min, atom::judge_v, where, facts)
            .then(
                [answer](const Message<wire::Verdict>& says) mutable {
                  auto x = says.open();
                  if (x->getOutcome() != wire::Outcome::INFRASTRUCTURE) {
                    answer.deliver(says);
                    return;
                  }
                  answer.deliver(build<wire::Verdict>([](wire::Verdict::Builder y) {
                    y.setOutcome(wire::Outcome::REJECTED);
                    y.setReward(0);
                    y.setCategory("compile_error");
                  }));
                },
                [answer](caf::error& why) mutable { answer.deliver(std::move(why)); });
        return answer;
      },
  };
}

} // namespace

class sim_run final : public head_run {
public:
  sim_run(std::string name, std::shared_ptr<sim_runs> runs, bool resume)
      : facts_{name, "/runs/" + name, "auto", resume ? "cpu/x" : "", 0}, runs_(std::move(runs)),
        resume_(resume) {
    // nop
  }
  const head_run_facts& facts() const override { return facts_; }

  expected<void> open(const lane_facts&) override {
    runs_->known_.insert(facts_.name);
    runs_->disk_->marked.insert(facts_.name);
    alive_ = runs_->alive;
    return {};
  }

  run_actor start(caf::actor_system& system, const cluster_actor& queues,
                  const policy_client_actor& attached, const status_actor&) override {
    auto& on = runs_->on_;
    uint32_t opening = 0; // as a head finds it in its store
    for (auto& [key, record] : runs_->disk_->records()) {
      auto view = record.open();
      if (view->isRun() && view->getRun().getRun() == facts_.name)
        opening = std::max(opening, view->getRun().getOpening() + 1);
    }
    lineage_config config;
    config.own_thread = false;
    auto writer =
        own(spawn_group_commit_lineage(system, std::make_shared<sim_sink>(runs_), config));
    auto services = std::make_shared<episode_services>();
    services->policy = attached;
    auto asked = own(system.spawn(noting_queues, queues, &on, runs_));
    services->compiler = asked;
    services->runner = asked;
    services->profiler = asked;
    services->governance = own(system.spawn(rule_governance, governance_config{}));
    if (on.is(defect::fault_is_paid))
      services->governance = own(system.spawn(paying_governance, services->governance));
    services->lineage = own(
        system.spawn(noting_lineage, writer, &on, runs_->disk_, runs_->alive, &runs_->committing_));
    services->prompts = std::make_shared<prompt_cache>();
    auto settings = std::make_shared<episode_settings>();
    settings->max_turns = max_turns;
    settings->resume = resume_;
    settings->policy_deadline = 60s;
    run_plan batch;
    batch.name = facts_.name;
    batch.opening = opening;
    batch.group_size = group_size;
    batch.max_live = max_live;
    batch.groups.assign(groups_of_run, runs_->task_);
    actor_ = own(system.spawn(batch_run, batch, settings, services, nullptr));
    return actor_;
  }

  void close(bool over) override {
    for (auto& who : mine_) caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    if (over && alive_ && *alive_) runs_->disk_->marked.erase(facts_.name);
  }

private:
  template <class Handle>
  Handle own(Handle x) {
    mine_.push_back(caf::actor_cast<caf::actor>(x));
    runs_->actors_.push_back(mine_.back());
    return runs_->on_.keep(x);
  }

  head_run_facts facts_;
  std::shared_ptr<sim_runs> runs_;
  std::shared_ptr<bool> alive_;
  bool resume_;
  run_actor actor_;
  std::vector<caf::actor> mine_;
};

sim_runs::sim_runs(machine& on, std::shared_ptr<sim_disk> disk, task_ptr what)
    : on_(on), disk_(std::move(disk)), task_(std::move(what)) {
  // nop
}

expected<head_run_ptr> sim_runs::read(const std::string& name) {
  if (is_known(name)) return configuration_error("run_exists", "there is such a run", "");
  return std::make_shared<sim_run>(name, shared_from_this(), false);
}

expected<head_run_ptr> sim_runs::find(const std::string& name) {
  if (!is_known(name)) return configuration_error("not_found", "there is no such run", "");
  return std::make_shared<sim_run>(name, shared_from_this(), true);
}

std::vector<std::string> sim_runs::left_over() {
  if (!disk_->marked.empty()) on_.mark("a head takes up the runs of the one before");
  return {disk_->marked.begin(), disk_->marked.end()};
}

void sim_runs::kill_all() {
  for (auto& who : actors_) caf::anon_send_exit(who, caf::exit_reason::kill);
  actors_.clear();
  wishes_.clear();
  committing_ = 0;
}

void sim_runs::asked_for(const envelope& where, char kind) {
  wishes_[{where.run, where.episode, where.trace, kind}] = {next_wish_++, 0};
}

// The bound on progress finds wishes that are never served; this is of those that were.
void sim_runs::given_out(const envelope& where, char kind) {
  auto i = wishes_.find({where.run, where.episode, where.trace, kind});
  if (i == wishes_.end()) return on_.mark("a job is given out again");
  auto mine = i->second;
  wishes_.erase(i);
  overtaken_ = std::max(overtaken_, mine.overtaken);
  for (auto& [key, other] : wishes_)
    if (other.number < mine.number && std::get<char>(key) == kind) ++other.overtaken;
}

} // namespace kernelmill::sim
