#include "actors/cluster/head_gate.hpp"

#include <algorithm>
#include <chrono>

#include <caf/all.hpp>

#include "actors/cluster/remote_workers.hpp"
#include "actors/gather.hpp"
#include "actors/plain_name.hpp"
#include "actors/snapshots.hpp"
#include "messages/base/clock.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_lost_members = 100;

} // namespace

// -- roster
// -----------------------------------------------------------------------------------------

cluster_roster::cluster_roster(caf::actor_system& system, lease_policy policy)
    : system_(system), policy_(policy) {
  // nop
}

cluster_roster::~cluster_roster() {
  for (auto& [lane, who] : queues_) caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
}

std::vector<member_facts> cluster_roster::members() const {
  std::lock_guard guard{mutex_};
  std::vector<member_facts> result;
  for (auto& [name, x] : members_) result.push_back(x);
  return result;
}

std::vector<std::string> cluster_roster::lanes() const {
  std::lock_guard guard{mutex_};
  std::vector<std::string> result;
  for (auto& [lane, who] : queues_) result.push_back(lane);
  return result;
}

cluster_actor cluster_roster::queues(const std::string& lane) {
  std::lock_guard guard{mutex_};
  auto i = queues_.find(lane);
  if (i == queues_.end()) i = queues_.emplace(lane, system_.spawn(leasing_cluster, policy_)).first;
  return i->second;
}

void cluster_roster::put(const member_facts& x) {
  std::lock_guard guard{mutex_};
  members_[x.name] = x;
  std::erase_if(lost_members_, [&](const auto& known) { return known.name == x.name; });
}

void cluster_roster::remove(const std::string& name) {
  std::lock_guard guard{mutex_};
  auto i = members_.find(name);
  if (i == members_.end()) return;
  if (!i->second.draining) {
    ++lost_;
    if (lost_members_.size() == most_lost_members) lost_members_.erase(lost_members_.begin());
    lost_members_.push_back(std::move(i->second));
    lost_members_.back().since = seconds_since_1970();
  }
  members_.erase(i);
}

uint64_t cluster_roster::lost() const {
  std::lock_guard guard{mutex_};
  return lost_;
}

std::vector<member_facts> cluster_roster::lost_members() const {
  std::lock_guard guard{mutex_};
  return lost_members_;
}

// -- gate
// -------------------------------------------------------------------------------------------

namespace {

struct member {
  member_facts facts;
  uint64_t epoch = 0;
  node_gate_actor gate;
  std::vector<caf::actor> workers;
};

using control_desk_actor = caf::typed_actor<
    // Does what a user's command asks for, blocking.
    caf::replies_to<atom::control,
                    Message<wire::ControlRequest>>::with<Message<wire::ControlReply>>>;

control_desk_actor::behavior_type control_desk(control_desk_actor::pointer,
                                               control_handler handle) {
  return {[handle = std::move(handle)](atom::control, const Message<wire::ControlRequest>& x) {
    return handle(x);
  }};
}

Message<wire::Welcome> refusal(const error& why) {
  return build<wire::Welcome>([&](wire::Welcome::Builder x) { set_fault(x.initFault(), why); });
}

member_facts facts_of(wire::NodeOffer::Reader x) {
  member_facts result;
  result.name = x.getName();
  result.backend = x.getBackend();
  result.architecture = x.getArchitecture();
  result.hardware = x.getHardware();
  result.toolchain = x.getToolchain();
  result.compilers = x.getCompilers();
  for (auto slot : x.getSlots()) result.slots.emplace_back(slot.cStr());
  result.sandbox_complete = x.getSandboxComplete();
  result.since = seconds_since_1970();
  return result;
}

} // namespace

struct head_gate_state {
  head_gate_settings settings;
  control_desk_actor desk;
  std::map<std::string, member> members;

  static inline const char* name = "head-gate";

  ~head_gate_state() {
    while (!members.empty()) forget(members.begin());
  }

  void tell(log_level level, const std::string& what) const {
    settings.log.write(level, {name, {}, {}, {}}, what);
  }

  void forget(std::map<std::string, member>::iterator i) {
    for (auto& who : i->second.workers)
      caf::anon_send_exit(who, caf::exit_reason::remote_link_unreachable);
    settings.roster->remove(i->first);
    members.erase(i);
  }
};

namespace {

using head_side = head_gate_actor::stateful_pointer<head_gate_state>;

template <class Handle>
void offer(head_side self, member& x, const cluster_actor& queues, const Handle& worker,
           uint32_t credits) {
  x.workers.push_back(caf::actor_cast<caf::actor>(worker));
  self->send(queues, atom::lease_v, worker, credits);
}

void add_workers(head_side self, member& x) {
  auto node = std::make_shared<remote_node>();
  node->name = x.facts.name;
  node->gate = x.gate;
  node->epoch = self->state.settings.epoch;
  node->shelf = self->state.settings.shelf;
  auto queues = self->state.settings.roster->queues(x.facts.lane());
  auto& system = self->system();
  auto slots = static_cast<uint32_t>(x.facts.slots.size());
  if (x.facts.compilers > 0)
    offer(self, x, queues, spawn_remote_compiler(system, node), x.facts.compilers);
  if (slots == 0) return;
  // Two credits a slot: the next job is already there when a candidate is done.
  offer(self, x, queues, spawn_remote_runner(system, node), 2 * slots);
  offer(self, x, queues, spawn_remote_profiler(system, node), slots);
}

// Two machines may have one name; a node that came back has another epoch than its old self, whose
// end is noticed in a moment.
std::string free_name(const head_gate_state& s, const std::string& wanted, uint64_t epoch) {
  auto name = wanted;
  for (int n = 2;; ++n) {
    auto i = s.members.find(name);
    if (i == s.members.end() || i->second.epoch == epoch) return name;
    name = wanted + "-" + std::to_string(n);
  }
}

// "cpu/x86-64, 2 compilers, slots 0, 1".
std::string offer_text(const member_facts& x) {
  std::string slots;
  for (const auto& one : x.slots) slots += (slots.empty() ? ", slots " : ", ") + one;
  return x.lane() + ", " + std::to_string(x.compilers) + " compilers" + slots;
}

Message<wire::Welcome> refuse(const head_gate_state& s, const std::string& who, const error& why) {
  s.tell(log_level::warn, "refused the node " + who + ": " + why.message);
  return refusal(why);
}

Message<wire::Welcome> admit(head_side self, const Message<wire::NodeOffer>& offered,
                             const node_gate_actor& who) {
  auto& s = self->state;
  auto x = offered.open();
  if (x->getBuild() != s.settings.build)
    return refuse(s, x->getName(),
                  {fault_class::configuration, "build_differs",
                   "failed to join: the node is of build " + std::string{x->getBuild()} +
                       ", the head of " + s.settings.build,
                   "install the same version on all machines"});
  if (!is_host_like_name(x->getName().cStr()))
    return refuse(
        s, x->getName(),
        {fault_class::configuration, "usage", "failed to join: the node's name is no name",
         "give it one with --name: up to 200 letters, digits, '.', '_' and '-', without blanks"});
  member m;
  m.facts = facts_of(*x);
  m.epoch = x->getEpoch();
  m.gate = who;
  m.facts.name = free_name(s, m.facts.name, m.epoch);
  // The same process again: its connection broke before we knew.
  if (auto old = s.members.find(m.facts.name); old != s.members.end()) s.forget(old);
  self->monitor(who);
  add_workers(self, m);
  s.settings.roster->put(m.facts);
  auto name = m.facts.name;
  s.tell(log_level::info, "the node " + name + " joined: " + offer_text(m.facts));
  s.members.emplace(name, std::move(m));
  return build<wire::Welcome>([&](wire::Welcome::Builder w) {
    w.setEpoch(s.settings.epoch);
    w.setName(name);
  });
}

void drain(head_side self, const std::string& name) {
  auto i = self->state.members.find(name);
  if (i == self->state.members.end()) return;
  auto& x = i->second;
  x.facts.draining = true;
  self->state.tell(log_level::info, "the node " + name + " drains");
  auto queues = self->state.settings.roster->queues(x.facts.lane());
  for (auto& who : x.workers) self->send(queues, atom::retire_v, who.address());
  self->state.settings.roster->put(x.facts);
  self->send(x.gate, atom::drain_v);
}

// Below the head's own: what each node's monitor says, and the workers that stand for nodes in the
// queues, whose "actor" is what a lease names.
status_actor ask_nodes(head_side self) {
  auto& s = self->state;
  std::vector<status_actor> nodes;
  auto names = std::make_shared<std::vector<std::string>>();
  for (auto& [name, x] : s.members) {
    nodes.emplace_back(x.gate);
    names->push_back(name);
    for (auto& worker : x.workers) {
      nodes.push_back(caf::actor_cast<status_actor>(worker));
      names->push_back(name);
    }
  }
  auto own = signed_by(
      self, snapshot_of("head", {}, "serving", {},
                        {{"nodes", s.members.size()}, {"lost", s.settings.roster->lost()}}));
  return spawn_gatherer(self->system(), std::move(nodes), own,
                        [names](size_t i) { return snapshot_of("node", (*names)[i], {}, {}, {}); });
}

head_gate_actor::behavior_type head_gate(head_side self, head_gate_settings settings) {
  self->state.desk = self->spawn<caf::detached + caf::linked>(control_desk, settings.control);
  self->state.settings = std::move(settings);
  self->set_down_handler([self](caf::down_msg& down) {
    auto& all = self->state.members;
    auto i = std::find_if(all.begin(), all.end(),
                          [&](auto& x) { return x.second.gate.address() == down.source; });
    if (i == all.end()) return;
    if (i->second.facts.draining)
      self->state.tell(log_level::info, "the node " + i->first + " has drained and is gone");
    else
      self->state.tell(log_level::warn, "lost the node " + i->first + " (" +
                                            offer_text(i->second.facts) +
                                            "): " + self->system().render(down.reason));
    self->state.forget(i);
  });
  return {
      [self](atom::status) { return self->delegate(ask_nodes(self), atom::status_v); },
      [self](atom::join, const Message<wire::NodeOffer>& offered, const node_gate_actor& who) {
        return admit(self, offered, who);
      },
      [self](atom::drain, const std::string& name) { drain(self, name); },
      [self](atom::control, const Message<wire::ControlRequest>& x) {
        return self->delegate(self->state.desk, atom::control_v, x);
      },
  };
}

} // namespace

head_gate_actor spawn_head_gate(caf::actor_system& system, head_gate_settings settings) {
  return system.spawn(head_gate, std::move(settings));
}

} // namespace kernelmill
