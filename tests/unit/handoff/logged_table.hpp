#pragma once

// A table and the log that it is made from again.

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "actors/handoff/lease_table.hpp"

namespace kernelmill::handoff {

/// All that a table says of itself: two with the same text answer alike.
inline std::string text_of(const lease_table& x) {
  std::string result;
  for (const auto& [id, of] : x.orders()) {
    result += id + (of.cancelled ? " cancelled" : "") + ":";
    for (const auto& g : of.groups)
      result += std::string{" "} + to_string(g.state) + "/" + std::to_string(g.place) + "/" +
                std::to_string(g.lease) + "/" + std::to_string(g.step) + "/" + g.reason;
    for (const auto& [place, group] : of.queue)
      result += " " + std::to_string(place) + "=" + std::to_string(group);
    result += "\n";
  }
  for (const auto& [number, of] : x.leases())
    result += "lease " + std::to_string(number) + " " + of.consumer + " " + of.request + " " +
              std::to_string(of.held) + " of " + std::to_string(of.live) + " until " +
              std::to_string(of.until_ms) + "\n";
  for (const auto& [name, of] : x.consumers()) {
    result += name + " generation " + std::to_string(of.generation) + " at " +
              std::to_string(of.committed);
    for (const auto& [request, lease] : of.requests)
      result += " " + request + "=" + std::to_string(lease);
    for (const auto& [where, step] : of.acked)
      result += " " + where.first + "." + std::to_string(where.second) + "=" + std::to_string(step);
    result += "\n";
  }
  return result + std::to_string(x.latest_ordinal()) + " " + std::to_string(x.next_expiry());
}

inline uint32_t sum_of(const order_entry& x) {
  uint32_t result = 0;
  for (auto count : x.counts) result += count;
  return result;
}

/// Checks a command, and applies what it causes.
struct logged_table {
  lease_table now;
  events log;

  expected<void> keep(const expected<events>& caused) {
    KM_TRY(caused);
    for (const auto& x : *caused) {
      auto ok = now.apply(*x.open());
      EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
      log.push_back(x);
    }
    return {};
  }

  template <class Command>
  expected<void> tell(const Command& x, int64_t at = 0) {
    return keep(now.check(x, at));
  }

  void order(const std::string& id, uint32_t groups, int64_t max_off_policy = -1) {
    order_command x;
    x.id = id;
    x.digest = "digest";
    x.groups = groups;
    x.group_size = 4;
    x.max_off_policy = max_off_policy;
    EXPECT_TRUE(tell(x));
  }

  void ready(const std::string& id, uint32_t group, const std::string& version = {}) {
    settle_command x{id, group, 4, {}, {}};
    if (!version.empty()) x.versions.push_back(version);
    EXPECT_TRUE(tell(x));
  }

  group_state state(const std::string& id, uint32_t group) const {
    return now.find(id)->groups[group].state;
  }

  uint32_t count(const std::string& id, group_state x) const { return now.find(id)->count(x); }
};

inline std::string category_of(const expected<void>& x) {
  return x ? "" : x.error().category;
}

} // namespace kernelmill::handoff
