#pragma once

// The log of the hand-off of groups to trainers: an LMDB environment of its own, whose records are
// events in the order in which they happened. Nothing in it is ever changed or removed, so that it
// proves which trainer got which group.
//
//   key:   sequence number, from 1      8 bytes, big-endian
//   value: as in the lineage store (storage/lineage/keys.hpp), then the words of the
//   Message<HandoffEvent>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "messages/handoff.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// Alive as long as the call that gets it. An error ends the scan.
using handoff_visitor = std::function<expected<void>(uint64_t, wire::HandoffEvent::Reader)>;

/// Thread safety: any number of threads; writers take turns.
class handoff_ledger {
public:
  struct options {
    std::string directory;
    bool read_only = false;
    bool durable = true; ///< false (tests): no fsync
  };

  /// Opens or creates; read_only never creates. Errors: those of store::open.
  static expected<handoff_ledger> open(const options& x);

  handoff_ledger(handoff_ledger&&) noexcept;
  handoff_ledger& operator=(handoff_ledger&&) noexcept;
  ~handoff_ledger();

  /// Writes all of them in one transaction, behind those that are there; they are durable when it
  /// returns. On error none of them is there.
  expected<void> append(const std::vector<Message<wire::HandoffEvent>>& events);

  /// Visits the events from number `from` on, in order. Errors: the visitor's, "store_damaged".
  expected<void> scan(uint64_t from, const handoff_visitor& visit) const;

private:
  struct state;
  explicit handoff_ledger(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill
