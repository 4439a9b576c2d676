// What events do to the table. Each is checked first: an event that the table cannot have caused is
// damage, and changes nothing.

#include "actors/handoff/lease_table.hpp"

namespace kernelmill::handoff {

namespace {

tl::unexpected<error> impossible(const std::string& cause) {
  return infrastructure_error("store_damaged", "failed to read the log of the hand-off: " + cause,
                              "restore the folder `handoff` of the root from a copy");
}

std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

expected<void> in_state(const order_entry& of, capnp::List<uint32_t>::Reader groups,
                        std::initializer_list<group_state> states, const char* verb) {
  for (auto group : groups) {
    bool fits = false;
    if (group < of.groups.size())
      for (auto x : states) fits = fits || of.groups[group].state == x;
    if (!fits)
      return impossible("group " + std::to_string(group) + " of " + of.what.id +
                        " cannot have been " + verb);
  }
  return {};
}

} // namespace

expected<void> lease_table::apply(wire::HandoffEvent::Reader x) {
  switch (x.which()) {
    case wire::HandoffEvent::ORDER: return apply_order(x.getOrder());
    case wire::HandoffEvent::READY: return apply_ready(x.getReady());
    case wire::HandoffEvent::DROPPED: return apply_dropped(x.getDropped());
    case wire::HandoffEvent::LEASED: return apply_leased(x.getLeased());
    case wire::HandoffEvent::RELEASED: return apply_released(x.getReleased());
    case wire::HandoffEvent::ACKED: return apply_acked(x.getAcked());
    case wire::HandoffEvent::COMMITTED: return apply_committed(x.getCommitted());
    case wire::HandoffEvent::ROLLED_BACK: return apply_rolled_back(x.getRolledBack());
    case wire::HandoffEvent::WITHDRAWN: {
      auto of = entry_of(x.getWithdrawn());
      KM_TRY(of);
      if ((*of)->count(group_state::open) != (*of)->groups.size())
        return impossible("the order " + (*of)->what.id + " was withdrawn, but its run has groups");
      orders_.erase(text_of(x.getWithdrawn()));
      return {};
    }
    case wire::HandoffEvent::CANCELLED: {
      auto of = entry_of(x.getCancelled());
      KM_TRY(of);
      (*of)->cancelled = true;
      return {};
    }
    case wire::HandoffEvent::WEIGHTS: {
      auto of = x.getWeights();
      if (of.getOrdinal() != latest_ordinal_ + 1)
        return impossible("versions of the weights are out of order");
      ordinals_[text_of(of.getVersion())] = ++latest_ordinal_;
      return {};
    }
  }
  return impossible("an event is of a kind that this version does not know");
}

expected<order_entry*> lease_table::entry_of(capnp::Text::Reader order) {
  auto i = orders_.find(text_of(order));
  if (i == orders_.end()) return impossible("it names an order that was never made");
  return &i->second;
}

void lease_table::move(order_entry& in, uint32_t group, group_state to) {
  auto& x = in.groups[group];
  --in.counts[static_cast<size_t>(x.state)];
  ++in.counts[static_cast<size_t>(to)];
  if (x.state == group_state::ready) in.queue.erase(x.place);
  if (to == group_state::ready) {
    if (x.place == 0) x.place = ++latest_place_;
    in.queue.emplace(x.place, group);
  }
  x.state = to;
}

// Its groups that are not acknowledged are ready again.
void lease_table::let_go(uint64_t number) {
  auto& x = leases_.at(number);
  auto& of = orders_.at(x.order);
  expiries_.erase({x.until_ms, number});
  x.live -= x.held;
  x.held = 0;
  for (auto group : x.groups)
    if (of.groups[group].state == group_state::leased && of.groups[group].lease == number)
      move(of, group, group_state::ready);
  if (x.live > 0) return;
  auto& requests = consumers_[x.consumer].requests;
  if (auto i = requests.find(x.request); i != requests.end() && i->second == number)
    requests.erase(i);
  leases_.erase(number);
}

// The name of its request stays taken.
void lease_table::forget_one(uint64_t number) {
  auto i = leases_.find(number);
  if (i != leases_.end() && --i->second.live == 0) leases_.erase(i);
}

expected<void> lease_table::apply_order(wire::HandoffOrder::Reader x) {
  auto id = text_of(x.getId());
  if (id.empty() || orders_.contains(id)) return impossible("the order " + id + " was made twice");
  order_entry to;
  to.what = {id,
             text_of(x.getDigest()),
             text_of(x.getConfig()),
             text_of(x.getForm()),
             x.getGroups(),
             x.getGroupSize(),
             x.getMaxOffPolicy(),
             x.getMaxReady(),
             x.getDeadlineMs(),
             text_of(x.getClient())};
  to.groups.resize(x.getGroups());
  to.counts[static_cast<size_t>(group_state::open)] = x.getGroups();
  orders_.emplace(id, std::move(to));
  return {};
}

expected<void> lease_table::apply_ready(wire::HandoffReady::Reader x) {
  auto of = entry_of(x.getOrder());
  KM_TRY(of);
  auto group = x.getGroup();
  if (group >= (*of)->groups.size() || (*of)->groups[group].state != group_state::open)
    return impossible("group " + std::to_string(group) + " of " + (*of)->what.id +
                      " became ready twice");
  auto& to = (*of)->groups[group];
  to.delivered = x.getDelivered();
  for (auto version : x.getVersions()) to.versions.push_back(text_of(version));
  move(**of, group, group_state::ready);
  return {};
}

expected<void> lease_table::apply_dropped(wire::HandoffDropped::Reader x) {
  auto of = entry_of(x.getOrder());
  KM_TRY(of);
  KM_TRY(in_state(**of, x.getGroups(), {group_state::open, group_state::ready}, "dropped"));
  auto reason = text_of(x.getReason());
  for (auto group : x.getGroups()) {
    move(**of, group, group_state::dropped);
    (*of)->groups[group].reason = reason;
    ++(*of)->reasons[reason];
  }
  return {};
}

expected<void> lease_table::apply_leased(wire::HandoffLease::Reader x) {
  auto of = entry_of(x.getOrder());
  KM_TRY(of);
  KM_TRY(in_state(**of, x.getGroups(), {group_state::ready}, "leased"));
  auto name = text_of(x.getConsumer());
  auto number = x.getLease();
  if (number != latest_lease_ + 1) return impossible("leases are out of order");
  if (consumer(name).generation != x.getGeneration())
    return impossible("lease " + std::to_string(number) + " is of a consumer that was fenced");
  lease_entry to;
  to.order = (*of)->what.id;
  to.consumer = name;
  to.request = text_of(x.getRequest());
  to.generation = x.getGeneration();
  to.asked = x.getAsked();
  to.held = to.live = x.getGroups().size();
  to.until_ms = x.getUntilMs();
  for (auto group : x.getGroups()) {
    to.groups.push_back(group);
    move(**of, group, group_state::leased);
    (*of)->groups[group].lease = number;
    (*of)->groups[group].consumer = name;
  }
  auto& who = consumers_[name];
  if (!to.request.empty()) who.requests[to.request] = number;
  expiries_.emplace(to.until_ms, number);
  leases_.emplace(number, std::move(to));
  latest_lease_ = number;
  return {};
}

expected<void> lease_table::apply_released(wire::HandoffRelease::Reader x) {
  auto lease = find_lease(x.getLease());
  if (!lease || lease->held == 0)
    return impossible("lease " + std::to_string(x.getLease()) + " was released twice");
  let_go(x.getLease());
  return {};
}

expected<void> lease_table::apply_acked(wire::HandoffAck::Reader x) {
  auto number = x.getLease();
  auto i = leases_.find(number);
  if (i == leases_.end() || i->second.held < x.getGroups().size())
    return impossible("lease " + std::to_string(number) + " was acknowledged when it was lost");
  auto& lease = i->second;
  auto& of = orders_.at(lease.order);
  KM_TRY(in_state(of, x.getGroups(), {group_state::leased}, "acknowledged"));
  auto& who = consumers_[lease.consumer];
  if (x.getStep() <= who.committed)
    return impossible("lease " + std::to_string(number) + " was acknowledged for a committed step");
  for (auto group : x.getGroups())
    if (of.groups[group].lease != number)
      return impossible("a group was acknowledged under another lease than its own");
  for (auto group : x.getGroups()) {
    move(of, group, group_state::acked);
    of.groups[group].step = x.getStep();
    who.acked[{of.what.id, group}] = x.getStep();
  }
  lease.held -= x.getGroups().size();
  if (lease.held == 0) expiries_.erase({lease.until_ms, number});
  return {};
}

void lease_table::commit_up_to(const std::string& consumer, int64_t step) {
  auto& who = consumers_[consumer];
  for (auto i = who.acked.begin(); i != who.acked.end();) {
    if (i->second > step) {
      ++i;
      continue;
    }
    auto& of = orders_.at(i->first.first);
    move(of, i->first.second, group_state::committed);
    forget_one(of.groups[i->first.second].lease);
    i = who.acked.erase(i);
  }
  who.committed = step;
}

expected<void> lease_table::apply_committed(wire::HandoffStep::Reader x) {
  auto name = text_of(x.getConsumer());
  if (x.getStep() <= consumer(name).committed)
    return impossible("step " + std::to_string(x.getStep()) + " was committed twice");
  commit_up_to(name, x.getStep());
  return {};
}

// The consumer goes on from a checkpoint of this step. So all groups in it are committed, whether
// or not the consumer reported that.
expected<void> lease_table::apply_rolled_back(wire::HandoffStep::Reader x) {
  auto name = text_of(x.getConsumer());
  commit_up_to(name, x.getStep());
  std::vector<uint64_t> held;
  for (const auto& [number, lease] : leases_)
    if (lease.consumer == name && lease.held > 0) held.push_back(number);
  for (auto number : held) let_go(number);
  for (auto& [id, of] : orders_)
    for (uint32_t group = 0; group < of.groups.size(); ++group) {
      auto& entry = of.groups[group];
      bool learned = entry.state == group_state::acked || entry.state == group_state::committed;
      if (!learned || entry.consumer != name || entry.step <= x.getStep()) continue;
      if (entry.state == group_state::acked) forget_one(entry.lease);
      move(of, group, group_state::ready);
    }
  auto& who = consumers_[name];
  who.acked.clear();
  who.requests.clear();
  ++who.generation;
  return {};
}

} // namespace kernelmill::handoff
