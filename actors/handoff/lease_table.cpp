// What commands cause. What events do to the table: lease_table_events.cpp.

#include "actors/handoff/lease_table.hpp"

#include <algorithm>
#include <numeric>

namespace kernelmill::handoff {

namespace {

tl::unexpected<error> bad(std::string message) {
  return configuration_error("bad_request", std::move(message));
}

tl::unexpected<error> conflict(std::string message, std::string hint) {
  return configuration_error("handoff_conflict", std::move(message), std::move(hint));
}

tl::unexpected<error> lost(uint64_t lease) {
  return configuration_error(
      "lease_lost", "the lease " + std::to_string(lease) + " is not held any more",
      "the next trainer that asks gets its groups; do not train on them, ask for other ones");
}

template <class F>
event made(int64_t now, F&& fill) {
  return build<wire::HandoffEvent>([&](wire::HandoffEvent::Builder x) {
    x.setAt(now);
    fill(x);
  });
}

template <class List>
void put_numbers(List list, const std::vector<uint32_t>& from) {
  for (unsigned i = 0; i < from.size(); ++i) list.set(i, from[i]);
}

event dropped_event(int64_t now, const std::string& order, const std::vector<uint32_t>& groups,
                    const std::string& reason) {
  return made(now, [&](wire::HandoffEvent::Builder e) {
    auto x = e.initDropped();
    x.setOrder(order);
    x.setReason(reason);
    put_numbers(x.initGroups(static_cast<unsigned>(groups.size())), groups);
  });
}

event step_event(int64_t now, bool back, const std::string& consumer, int64_t step) {
  return made(now, [&](wire::HandoffEvent::Builder e) {
    auto x = back ? e.initRolledBack() : e.initCommitted();
    x.setConsumer(consumer);
    x.setStep(step);
  });
}

std::vector<uint32_t> groups_in(const order_entry& of, std::initializer_list<group_state> states) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < of.groups.size(); ++i)
    if (std::find(states.begin(), states.end(), of.groups[i].state) != states.end())
      result.push_back(i);
  return result;
}

tl::unexpected<error> no_order(const std::string& id) {
  return configuration_error("not_found", "there is no order of rollouts '" + id + "'",
                             "POST /v1/rollouts makes one");
}

expected<void> fence(const consumer_entry& of, const std::string& name, uint64_t generation) {
  if (generation == of.generation) return {};
  return configuration_error("consumer_fenced",
                             "the consumer '" + name + "' is of generation " +
                                 std::to_string(of.generation) +
                                 " since its latest rollback, not " + std::to_string(generation),
                             "another trainer of that name has started since; end this one");
}

} // namespace

const char* to_string(group_state x) noexcept {
  static constexpr const char* names[] = {"open",  "ready",     "leased",
                                          "acked", "committed", "dropped"};
  return names[static_cast<size_t>(x)];
}

// -- looking ------------------------------------------------------------------------------------

const order_entry* lease_table::find(const std::string& order) const {
  auto i = orders_.find(order);
  return i == orders_.end() ? nullptr : &i->second;
}

const lease_entry* lease_table::find_lease(uint64_t lease) const {
  auto i = leases_.find(lease);
  return i == leases_.end() ? nullptr : &i->second;
}

uint64_t lease_table::open_lease(const std::string& consumer, const std::string& request) const {
  auto who = consumers_.find(consumer);
  if (request.empty() || who == consumers_.end()) return 0;
  auto i = who->second.requests.find(request);
  if (i == who->second.requests.end()) return 0;
  auto lease = find_lease(i->second);
  return lease && lease->held > 0 ? i->second : 0;
}

consumer_entry lease_table::consumer(const std::string& name) const {
  auto i = consumers_.find(name);
  return i == consumers_.end() ? consumer_entry{} : i->second;
}

uint64_t lease_table::ordinal(const std::string& version) const {
  auto i = ordinals_.find(version);
  return i == ordinals_.end() ? 0 : i->second;
}

std::pair<std::string, std::string> lease_table::span(const group_entry& x) const {
  if (x.versions.empty()) return {};
  auto older = [this](const auto& a, const auto& b) { return ordinal(a) < ordinal(b); };
  auto [first, last] = std::minmax_element(x.versions.begin(), x.versions.end(), older);
  return {*first, *last};
}

int64_t lease_table::next_expiry() const {
  return expiries_.empty() ? 0 : expiries_.begin()->first;
}

const char* lease_table::staleness(const order_entry& of, const group_entry& x) const {
  if (of.what.max_off_policy < 0) return nullptr;
  if (x.versions.empty()) return version_unknown;
  const char* result = nullptr;
  for (const auto& version : x.versions) {
    auto number = ordinal(version);
    if (number == 0) return version_unknown;
    if (latest_ordinal_ - number > static_cast<uint64_t>(of.what.max_off_policy)) result = stale;
  }
  return result;
}

bool lease_table::others_lease(const std::string& order, const std::string& consumer) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto& x) {
    return x.second.held > 0 && x.second.order == order && x.second.consumer != consumer;
  });
}

// -- orders and their groups --------------------------------------------------------------------

expected<events> lease_table::check(const order_command& x, int64_t now) const {
  if (auto known = find(x.id)) {
    if (known->what.client != x.client)
      return conflict("the name '" + x.id + "' is taken", "another order takes another id");
    if (known->what.digest == x.digest) return events{};
    return conflict("the order '" + x.id + "' was made with other content",
                    "another order takes another id");
  }
  if (x.groups == 0) return bad("an order must have groups");
  return events{made(now, [&](wire::HandoffEvent::Builder e) {
    auto to = e.initOrder();
    to.setId(x.id);
    to.setDigest(x.digest);
    to.setConfig(x.config);
    to.setForm(x.form);
    to.setGroups(x.groups);
    to.setGroupSize(x.group_size);
    to.setMaxOffPolicy(x.max_off_policy);
    to.setMaxReady(x.max_ready);
    to.setDeadlineMs(x.deadline_ms);
    to.setClient(x.client);
  })};
}

events lease_table::withdraw(const std::string& order, int64_t now) const {
  auto known = find(order);
  if (!known || known->count(group_state::open) != known->groups.size()) return {};
  return {made(now, [&](wire::HandoffEvent::Builder e) { e.setWithdrawn(order); })};
}

expected<events> lease_table::check(const settle_command& x, int64_t now) const {
  auto known = find(x.order);
  if (!known) return no_order(x.order);
  if (x.group >= known->groups.size())
    return bad("the order '" + x.order + "' has no group " + std::to_string(x.group));
  if (known->groups[x.group].state != group_state::open) return events{};
  if (!x.flaw.empty()) return events{dropped_event(now, x.order, {x.group}, x.flaw)};
  return events{made(now, [&](wire::HandoffEvent::Builder e) {
    auto to = e.initReady();
    to.setOrder(x.order);
    to.setGroup(x.group);
    to.setDelivered(x.delivered);
    auto list = to.initVersions(static_cast<unsigned>(x.versions.size()));
    for (unsigned i = 0; i < x.versions.size(); ++i) list.set(i, x.versions[i]);
  })};
}

expected<events> lease_table::check(const close_command& x, int64_t now) const {
  auto known = find(x.order);
  if (!known) return no_order(x.order);
  auto open = groups_in(*known, {group_state::open});
  if (open.empty()) return events{};
  return events{dropped_event(now, x.order, open, known->cancelled ? cancelled : x.reason)};
}

events lease_table::give_up(uint64_t number, uint32_t group, int64_t now) const {
  auto lease = find_lease(number);
  if (!lease) return {};
  const auto& entry = orders_.at(lease->order).groups.at(group);
  if (entry.state != group_state::leased || entry.lease != number) return {};
  return {made(now,
               [&](wire::HandoffEvent::Builder e) {
                 auto to = e.initReleased();
                 to.setLease(number);
                 to.setWhy(unreadable);
               }),
          dropped_event(now, lease->order, {group}, unreadable)};
}

// Leased groups may still be acknowledged. Groups that a rollback gives back are ready again.
expected<events> lease_table::cancel(const std::string& order, int64_t now) const {
  auto known = find(order);
  if (!known) return no_order(order);
  events result;
  if (!known->cancelled)
    result.push_back(made(now, [&](wire::HandoffEvent::Builder e) { e.setCancelled(order); }));
  auto here = groups_in(*known, {group_state::open, group_state::ready});
  if (!here.empty()) result.push_back(dropped_event(now, order, here, cancelled));
  return result;
}

// -- leases -------------------------------------------------------------------------------------

expected<events> lease_table::check(const lease_command& x, int64_t now) const {
  auto known = find(x.order);
  if (!known) return no_order(x.order);
  auto who = consumer(x.consumer);
  KM_TRY(fence(who, x.consumer, x.generation));
  if (x.groups == 0) return bad("at least one group must be asked for");
  if (known->what.max_ready > 0 && x.groups > known->what.max_ready)
    return bad("the order keeps no more than max_ready=" + std::to_string(known->what.max_ready) +
               " groups ready, so " + std::to_string(x.groups) + " are never there");
  if (auto before = who.requests.find(x.request); before != who.requests.end()) {
    auto lease = find_lease(before->second);
    if (!lease || lease->held == 0)
      return conflict("the groups of request '" + x.request + "' are acknowledged",
                      "ask for the next ones by another request");
    if (lease->order != x.order || lease->asked != x.groups)
      return conflict("the request '" + x.request + "' asked for something else before",
                      "another request takes another name");
    return events{};
  }
  std::map<std::string, std::vector<uint32_t>> too_old;
  std::vector<uint32_t> taken;
  for (const auto& [place, group] : known->queue) {
    if (taken.size() == x.groups) break;
    if (auto why = staleness(*known, known->groups[group]))
      too_old[why].push_back(group);
    else
      taken.push_back(group);
  }
  events result;
  for (const auto& [why, groups] : too_old)
    result.push_back(dropped_event(now, x.order, groups, why));
  bool more_may_come = known->count(group_state::open) > 0 || others_lease(x.order, x.consumer);
  if (taken.empty() || (taken.size() < x.groups && more_may_come)) return result;
  result.push_back(made(now, [&](wire::HandoffEvent::Builder e) {
    auto to = e.initLeased();
    to.setLease(latest_lease_ + 1);
    to.setOrder(x.order);
    put_numbers(to.initGroups(static_cast<unsigned>(taken.size())), taken);
    to.setConsumer(x.consumer);
    to.setGeneration(who.generation);
    to.setRequest(x.request);
    to.setAsked(x.groups);
    to.setUntilMs(now + x.lease_ms);
  }));
  return result;
}

events lease_table::expire(int64_t now) const {
  events result;
  for (const auto& [until, number] : expiries_) {
    if (until > now) break;
    result.push_back(made(now, [&, lease = number](wire::HandoffEvent::Builder e) {
      auto to = e.initReleased();
      to.setLease(lease);
      to.setWhy("expired");
    }));
    const auto& x = leases_.at(number);
    const auto& of = orders_.at(x.order);
    if (!of.cancelled) continue;
    std::vector<uint32_t> held;
    for (auto group : x.groups)
      if (of.groups[group].state == group_state::leased && of.groups[group].lease == number)
        held.push_back(group);
    result.push_back(dropped_event(now, x.order, held, cancelled));
  }
  return result;
}

expected<events> lease_table::check(const ack_command& x, int64_t now) const {
  auto lease = find_lease(x.lease);
  if (!lease && x.lease > latest_lease_)
    return configuration_error("not_found", "there is no lease " + std::to_string(x.lease));
  if (!lease) return lost(x.lease);
  const auto& of = orders_.at(lease->order);
  auto wanted = x.groups;
  if (wanted.empty())
    for (auto group : lease->groups)
      if (lease->held == 0 || of.groups[group].state == group_state::leased)
        wanted.push_back(group);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<uint32_t> fresh;
  for (auto group : wanted) {
    if (std::find(lease->groups.begin(), lease->groups.end(), group) == lease->groups.end())
      return bad("the lease " + std::to_string(x.lease) + " is not of group " +
                 std::to_string(group));
    const auto& entry = of.groups[group];
    if (entry.lease != x.lease) return lost(x.lease);
    if (entry.state == group_state::leased)
      fresh.push_back(group);
    else if (entry.state != group_state::acked && entry.state != group_state::committed)
      return lost(x.lease);
    else if (entry.step != x.step)
      return conflict("group " + std::to_string(group) + " was acknowledged for step " +
                          std::to_string(entry.step),
                      "a group is trained on in one step");
  }
  if (fresh.empty()) return events{};
  auto done = consumer(lease->consumer).committed;
  if (x.step <= done)
    return conflict(
        "step " + std::to_string(x.step) + " is not after the committed step " +
            std::to_string(done),
        "acknowledge groups before the step that learns from them, and commit it after");
  return events{made(now, [&](wire::HandoffEvent::Builder e) {
    auto to = e.initAcked();
    to.setLease(x.lease);
    to.setStep(x.step);
    put_numbers(to.initGroups(static_cast<unsigned>(fresh.size())), fresh);
  })};
}

// -- consumers ----------------------------------------------------------------------------------

expected<events> lease_table::check(const commit_command& x, int64_t now) const {
  auto who = consumer(x.consumer);
  KM_TRY(fence(who, x.consumer, x.generation));
  if (x.step < 0) return bad("a step is 0 or more");
  if (x.step <= who.committed) return events{};
  return events{step_event(now, false, x.consumer, x.step)};
}

// Also when there is nothing to give back: earlier generations of the name are rejected from now
// on.
expected<events> lease_table::check(const rollback_command& x, int64_t now) const {
  if (x.step < -1) return bad("a step is 0 or more, or -1 where there is no checkpoint");
  return events{step_event(now, true, x.consumer, x.step)};
}

events lease_table::declare(const std::string& version, int64_t now) const {
  if (latest_ordinal_ > 0 && ordinal(version) == latest_ordinal_) return {};
  return {made(now, [&](wire::HandoffEvent::Builder e) {
    auto to = e.initWeights();
    to.setVersion(version);
    to.setOrdinal(latest_ordinal_ + 1);
  })};
}

} // namespace kernelmill::handoff
