#pragma once

// Which trainer has which group. A group of an order is open until its record is committed, then
// ready, leased to a trainer, acknowledged for a step of its optimizer, and committed when a
// checkpoint holds that step. However a trainer goes back, each group counts in one step of what it
// keeps.
//
// The table is a plain value: a command is checked against it, which yields the events that it
// would cause; events are applied to it, once they are durable. Applying the log from its start
// makes the table anew, and refuses an event that the table of its time would not have caused.
//
// Invariant, of each order: groups = open + ready + leased + acked + committed + dropped.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "messages/error.hpp"
#include "messages/handoff.capnp.h"
#include "messages/message.hpp"

namespace kernelmill::handoff {

enum class group_state : unsigned char { open, ready, leased, acked, committed, dropped };
inline constexpr size_t group_states = 6;

const char* to_string(group_state x) noexcept;

// Why groups are dropped.
inline constexpr const char* stale =
    "stale"; ///< made by weights that are too old when it is asked for
inline constexpr const char* version_unknown =
    "version_unknown"; ///< its weights were never declared
inline constexpr const char* without_token_ids = "without_token_ids";
inline constexpr const char* without_logprobs = "without_logprobs";
inline constexpr const char* not_compared = "not_compared"; ///< no member has an advantage
inline constexpr const char* incomplete = "incomplete";     ///< the run ended before the group
inline constexpr const char* licence_forbids =
    "licence_forbids"; ///< its examples or its model's answers must not be trained on
inline constexpr const char* unreadable = "unreadable"; ///< its records or artifacts are lost
inline constexpr const char* deadline_passed = "deadline";
inline constexpr const char* cancelled = "cancelled";

// -- commands -----------------------------------------------------------------------------------

struct order_command {
  std::string id, digest, config, form;
  uint32_t groups = 0, group_size = 0;
  int64_t max_off_policy = -1; ///< in versions; below 0: any
  uint32_t max_ready = 0;      ///< 0: any number
  int64_t deadline_ms = 0;     ///< since 1970; 0: none
  std::string client;          ///< that owns it; empty: it has no owner
};

/// What a committed group holds.
struct settle_command {
  std::string order;
  uint32_t group = 0;
  uint32_t delivered = 0;
  std::vector<std::string> versions;
  std::string flaw; ///< why it cannot be trained on; empty: it can
};

/// Its run brings no more groups.
struct close_command {
  std::string order, reason;
};

struct lease_command {
  std::string order, consumer, request;
  uint64_t generation = 0;
  uint32_t groups = 1;
  int64_t lease_ms = 0;
};

struct ack_command {
  uint64_t lease = 0;
  std::vector<uint32_t> groups; ///< empty: all of the lease
  int64_t step = 0;
};

struct commit_command {
  std::string consumer;
  uint64_t generation = 0;
  int64_t step = 0;
};

struct rollback_command {
  std::string consumer;
  int64_t step = 0;
};

// -- what the table holds -----------------------------------------------------------------------

struct group_entry {
  group_state state = group_state::open;
  uint64_t place = 0;   ///< among all that were ever ready: the order in which they are given
  uint64_t lease = 0;   ///< the latest
  int64_t step = 0;     ///< that it was acknowledged for
  std::string consumer; ///< that leased it last
  uint32_t delivered = 0;
  std::vector<std::string> versions;
  std::string reason; ///< why it was dropped
};

struct order_entry {
  order_command what;
  bool cancelled = false;
  std::vector<group_entry> groups;
  std::array<uint32_t, group_states> counts{};
  std::map<std::string, uint32_t> reasons;
  std::map<uint64_t, uint32_t> queue; ///< ready groups by place

  uint32_t count(group_state x) const { return counts[static_cast<size_t>(x)]; }
  /// No group is left to give, unless a trainer goes back.
  bool over() const {
    return count(group_state::open) + count(group_state::ready) + count(group_state::leased) == 0;
  }
};

struct lease_entry {
  std::string order, consumer, request;
  uint64_t generation = 0;
  std::vector<uint32_t> groups;
  uint32_t asked = 0;
  uint32_t held = 0; ///< groups of it that are leased still
  uint32_t live = 0; ///< that are leased or acknowledged; at 0 it is forgotten
  int64_t until_ms = 0;
};

struct consumer_entry {
  uint64_t generation = 0; ///< one more with each rollback: earlier ones are rejected
  int64_t committed = -1;  ///< the latest step
  std::map<std::string, uint64_t> requests; ///< of this generation: their latest leases
  std::map<std::pair<std::string, uint32_t>, int64_t> acked; ///< order and group: step
};

using event = Message<wire::HandoffEvent>;
using events = std::vector<event>;

class lease_table {
public:
  // -- checking ---------------------------------------------------------------------------------

  // Each check() returns the events that a command causes at a time; none: it changes nothing.
  // Errors: "bad_request", "not_found", "handoff_conflict" (the same with other content came
  // before), "lease_lost", "consumer_fenced".

  expected<events> check(const order_command& x, int64_t now) const;
  expected<events> check(const settle_command& x, int64_t now) const;
  expected<events> check(const close_command& x, int64_t now) const;
  expected<events> check(const ack_command& x, int64_t now) const;
  expected<events> check(const commit_command& x, int64_t now) const;
  expected<events> check(const rollback_command& x, int64_t now) const;

  /// Drops groups that are too old, also when there is no lease in the end. There is none as long
  /// as fewer groups are ready than were asked for and more may come.
  expected<events> check(const lease_command& x, int64_t now) const;
  events withdraw(const std::string& order, int64_t now) const;
  /// A leased group that cannot be read: its lease is released, and it is dropped.
  events give_up(uint64_t lease, uint32_t group, int64_t now) const;
  expected<events> cancel(const std::string& order, int64_t now) const;
  events declare(const std::string& version, int64_t now) const;
  events expire(int64_t now) const; ///< leases whose time is over

  /// Errors: "store_damaged", when the table cannot have caused it. Then nothing has changed.
  expected<void> apply(wire::HandoffEvent::Reader x);

  // -- looking ----------------------------------------------------------------------------------

  const std::map<std::string, order_entry>& orders() const { return orders_; }
  const order_entry* find(const std::string& order) const;
  const std::map<uint64_t, lease_entry>& leases() const { return leases_; }
  const lease_entry* find_lease(uint64_t lease) const;
  /// The lease of a request that still holds groups; 0: there is none.
  uint64_t open_lease(const std::string& consumer, const std::string& request) const;
  uint64_t latest_lease() const { return latest_lease_; }
  consumer_entry consumer(const std::string& name) const;
  const std::map<std::string, consumer_entry>& consumers() const { return consumers_; }
  uint64_t ordinal(const std::string& version) const; ///< 0: never declared
  uint64_t latest_ordinal() const { return latest_ordinal_; }
  /// The oldest and the newest of a group's versions; "" when there is none.
  std::pair<std::string, std::string> span(const group_entry& x) const;
  /// When the next lease expires; 0: none is open.
  int64_t next_expiry() const;

private:
  expected<order_entry*> entry_of(capnp::Text::Reader order);
  void move(order_entry& in, uint32_t group, group_state to);
  void let_go(uint64_t lease);
  void forget_one(uint64_t lease);
  expected<void> apply_order(wire::HandoffOrder::Reader x);
  expected<void> apply_ready(wire::HandoffReady::Reader x);
  expected<void> apply_dropped(wire::HandoffDropped::Reader x);
  expected<void> apply_leased(wire::HandoffLease::Reader x);
  expected<void> apply_released(wire::HandoffRelease::Reader x);
  expected<void> apply_acked(wire::HandoffAck::Reader x);
  expected<void> apply_committed(wire::HandoffStep::Reader x);
  expected<void> apply_rolled_back(wire::HandoffStep::Reader x);
  void commit_up_to(const std::string& consumer, int64_t step);
  const char* staleness(const order_entry& of, const group_entry& x) const;
  bool others_lease(const std::string& order, const std::string& consumer) const;

  std::map<std::string, order_entry> orders_;
  std::map<uint64_t, lease_entry> leases_;
  std::set<std::pair<int64_t, uint64_t>> expiries_; ///< of leases that hold groups
  std::map<std::string, consumer_entry> consumers_;
  std::map<std::string, uint64_t> ordinals_;
  uint64_t latest_ordinal_ = 0;
  uint64_t latest_lease_ = 0;
  uint64_t latest_place_ = 0;
};

} // namespace kernelmill::handoff
