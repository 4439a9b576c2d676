#include "actors/cluster/remote_workers.hpp"
#include "actors/head/head_state.hpp"
#include "actors/plain_name.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"
#include "messages/sandbox_layers.hpp"

namespace kernelmill {

cluster_actor head_state::queues(const std::string& lane) {
  auto& all = settings_.lanes;
  auto i = all.find(lane);
  if (i == all.end())
    i = all.emplace(lane, self_->system().spawn(leasing_cluster, settings_.leases)).first;
  return i->second;
}

void head_state::add_workers(node& x, const member_facts& facts) {
  auto remote = std::make_shared<remote_node>();
  remote->name = facts.name;
  remote->gate = x.gate;
  remote->epoch = settings_.epoch;
  remote->shelf = settings_.shelf;
  remote->own_threads = settings_.own_threads;
  auto lane = queues(facts.lane());
  auto offer = [&](const auto& worker, uint32_t credits) {
    x.workers.push_back(caf::actor_cast<caf::actor>(worker));
    self_->send(lane, atom::lease_v, worker.address(), layer_bits(facts.layers));
    self_->send(lane, atom::lease_v, worker, credits);
  };
  auto& system = self_->system();
  auto slots = static_cast<uint32_t>(facts.slots.size());
  if (facts.compilers > 0) offer(spawn_remote_compiler(system, remote), facts.compilers);
  if (slots == 0) return;
  // Two credits a slot: the next job is already there when a candidate is done.
  offer(spawn_remote_runner(system, remote), 2 * slots);
  offer(spawn_remote_profiler(system, remote), slots);
}

// Two machines may have one name. A node that came back has another epoch than before, and the end
// of the earlier process is noticed in a moment.
std::string head_state::free_name(const std::string& wanted, uint64_t epoch) const {
  auto result = wanted;
  for (int n = 2;; ++n) {
    auto i = nodes_.find(result);
    if (i == nodes_.end() || i->second.epoch == epoch) return result;
    result = wanted + "-" + std::to_string(n);
  }
}

Message<wire::Welcome> head_state::refuse(const std::string& who, const error& why) const {
  tell(log_level::warn, "refused the node " + who + ": " + why.message);
  return build<wire::Welcome>([&](wire::Welcome::Builder x) { set_fault(x.initFault(), why); });
}

Message<wire::Welcome> head_state::admit(const Message<wire::NodeOffer>& offered,
                                         const node_gate_actor& who) {
  auto offer = offered.open();
  if (offer->getBuild() != settings_.build)
    return refuse(offer->getName(),
                  {fault_class::configuration, "build_differs",
                   "failed to join: the node is of build " + std::string{offer->getBuild()} +
                       ", the head of " + settings_.build,
                   "install the same version on all machines"});
  if (!is_host_like_name(offer->getName().cStr()))
    return refuse(offer->getName(),
                  {fault_class::configuration, "usage",
                   "failed to join: the node's name is no name",
                   "give it one with --name: up to 200 letters, digits, '.', '_' and '-', without "
                   "blanks"});
  auto facts = facts_of(*offer, seconds_since_1970());
  node x;
  x.epoch = offer->getEpoch();
  x.gate = who;
  facts.name = free_name(facts.name, x.epoch);
  forget(facts.name); // the same process again: its connection broke before we knew
  self_->monitor(who);
  add_workers(x, facts);
  roster_.put(facts);
  nodes_.emplace(facts.name, std::move(x));
  tell(log_level::info, "the node " + facts.name + " joined: " + offer_text(facts));
  for (const auto& [name, run] : runs_) {
    auto missing = layers_missing(run->facts.required_layers, facts.layers);
    if (run->live() && run->facts.lane == facts.lane() && !missing.empty())
      tell_unfit(*run, facts.name, missing);
  }
  return build<wire::Welcome>([&](wire::Welcome::Builder w) {
    w.setEpoch(settings_.epoch);
    w.setName(facts.name);
  });
}

void head_state::drain(const std::string& name) {
  auto known = roster_.find(name);
  if (!known) return;
  auto facts = *known;
  auto& x = nodes_.at(name);
  facts.draining = true;
  roster_.put(facts);
  tell(log_level::info, "the node " + name + " drains");
  auto lane = queues(facts.lane());
  for (auto& who : x.workers) self_->send(lane, atom::retire_v, who.address());
  self_->send(x.gate, atom::drain_v);
}

void head_state::forget(const std::string& name) {
  auto i = nodes_.find(name);
  if (i == nodes_.end()) return;
  for (auto& who : i->second.workers)
    caf::anon_send_exit(who, caf::exit_reason::remote_link_unreachable);
  roster_.remove(name, seconds_since_1970());
  nodes_.erase(i);
}

bool head_state::on_node_down(const caf::down_msg& down) {
  for (auto& [name, x] : nodes_) {
    if (x.gate.address() != down.source) continue;
    const auto& facts = *roster_.find(name);
    if (facts.draining)
      tell(log_level::info, "the node " + name + " has drained and is gone");
    else
      tell(log_level::warn, "lost the node " + name + " (" + offer_text(facts) +
                                "): " + self_->system().render(down.reason));
    forget(std::string{name});
    return true;
  }
  return false;
}

} // namespace kernelmill
