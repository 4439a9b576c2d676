#include "tests/sim/cluster/machine.hpp"

#include <algorithm>

namespace kernelmill::sim {

namespace {

caf::actor_system_config& configured(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::kernelmill>();
  config.add_message_types<caf::id_block::kernelmill_handles>();
  config.set("scheduler.policy", caf::atom("testing"));
  return config;
}

handed_work work_of(std::function<void()> f) {
  return std::make_shared<std::function<void()>>(std::move(f));
}

} // namespace

machine::machine(uint64_t seed, defect broken)
    : random_(seed), broken_(broken), system_(configured(config_)),
      scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
  scheduler_.clock().current_time += std::chrono::hours{1}; // time 0 has a special meaning
  epoch_ = scheduler_.clock().now();
  timer_ = spawn_porter();
}

machine::~machine() {
  // Actors that still hold timers would keep the scheduler's stop() busy for ever.
  for (auto& who : all_)
    if (auto alive = caf::actor_cast<caf::actor>(who))
      caf::anon_send_exit(alive, caf::exit_reason::kill);
  timer_ = nullptr;
  while (scheduler_.try_run_once()) {
  }
}

double machine::now() const {
  return std::chrono::duration<double>(scheduler_.clock().now() - epoch_).count();
}

void machine::after(std::chrono::microseconds delay, std::function<void()> f) {
  caf::delayed_anon_send(timer_, std::max(delay, std::chrono::microseconds{1}), atom::proceed_v,
                         work_of(std::move(f)));
}

bool machine::step() {
  auto& jobs = scheduler_.jobs;
  if (jobs.empty()) return scheduler_.clock().trigger_timeout();
  std::iter_swap(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(upto(jobs.size())));
  auto* actor = dynamic_cast<caf::scheduled_actor*>(jobs.front());
  auto time = static_cast<uint64_t>((scheduler_.clock().now() - epoch_).count());
  trace_hash_ = (trace_hash_ ^ (actor != nullptr ? actor->id() : 0) ^ time) * 0x9e3779b97f4a7c15ULL;
  ++steps_;
  scheduler_.run_once();
  return true;
}

bool machine::on(fault_kind kind, uint32_t where) const {
  return on_.contains({kind, where});
}

uint32_t machine::amount(fault_kind kind, uint32_t where) const {
  auto i = on_.find({kind, where});
  return i == on_.end() ? 0 : i->second.back();
}

void machine::begin(const fault& x) {
  on_[{x.kind, x.where}].push_back(x.amount);
}

void machine::end(const fault& x) {
  auto i = on_.find({x.kind, x.where});
  if (i == on_.end()) return;
  auto one = std::find(i->second.begin(), i->second.end(), x.amount);
  if (one != i->second.end()) i->second.erase(one);
  if (i->second.empty()) on_.erase(i);
}

const std::string& machine::other_session(const std::string& mine) {
  if (session_now_ != mine) {
    session_before_ = session_now_.empty() ? mine : session_now_;
    session_now_ = mine;
  }
  return session_before_;
}

worker_thread_actor machine::spawn_porter() {
  return keep(system_.spawn(blocking_worker));
}

void machine::lend(const worker_thread_actor& to, std::function<void()> f) {
  caf::anon_send(to, atom::proceed_v, work_of(std::move(f)));
}

} // namespace kernelmill::sim
