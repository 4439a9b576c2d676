#pragma once

// Asks many actors for their snapshots at once, in an actor of its own: ten thousand answers must
// not stand in the mailbox of the one that was asked, and one timer does for all of them.

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <caf/error.hpp>
#include <caf/fwd.hpp>
#include <tl/expected.hpp>

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

/// What one of them says, or why it says nothing.
using snapshot_answer = tl::expected<Message<wire::Snapshot>, caf::error>;

/// Asks each of `whom` for `what`, a message that a snapshot answers. Calls `each` with the number
/// of an actor and its answer, as they come, and `done` once when all have answered or `deadline`
/// is over.
template <class Self, class Handle, class Atom, class Each, class Done>
void ask_each(Self* self, const std::vector<Handle>& whom, Atom what,
              std::chrono::milliseconds deadline, Each each, Done done) {
  struct round {
    Each each;
    Done done;
    size_t open;

    void close_one() {
      if (--open == 0) done();
    }
  };
  auto all = std::make_shared<round>(round{std::move(each), std::move(done), whom.size() + 1});
  for (size_t i = 0; i < whom.size(); ++i)
    self->request(whom[i], deadline, what)
        .then(
            [all, i](const Message<wire::Snapshot>& x) {
              all->each(i, snapshot_answer{x});
              all->close_one();
            },
            [all, i](caf::error& why) {
              all->each(i, snapshot_answer{tl::unexpected<caf::error>{std::move(why)}});
              all->close_one();
            });
  all->close_one();
}

} // namespace kernelmill
