#pragma once

// Asks many actors for their snapshots at once, in an actor of its own: ten thousand answers must
// not stand in the mailbox of the one that was asked, and one timer does for all of them.

#include <chrono>
#include <functional>
#include <vector>

#include <caf/all.hpp>

#include "actors/snapshots.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// What is shown of `whom[i]` when it does not answer.
using unheard_snapshot = std::function<Message<wire::Snapshot>(size_t i)>;

/// How long an actor may take to say what it does before it counts as stuck.
inline constexpr std::chrono::seconds answer_patience_of_monitors{2};

/// Answers one STATUS with `head`'s fields and the snapshots of `whom` as its children, and ends.
/// Of one that is silent for two seconds stands what `unheard` says; one that is gone is left out.
status_actor spawn_gatherer(caf::actor_system& system, std::vector<status_actor> whom,
                            Message<wire::Snapshot> head, unheard_snapshot unheard);

/// A snapshot in the state "stuck": asked at `asked_at` (seconds since 1970), and no answer yet.
Message<wire::Snapshot> stuck_snapshot(wire::Snapshot::Reader known, double asked_at);

/// Copies `head` and puts `children` below it.
Message<wire::Snapshot> joined(const Message<wire::Snapshot>& head,
                               const std::vector<Message<wire::Snapshot>>& children);

} // namespace kernelmill
