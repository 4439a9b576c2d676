#pragma once

// Asks many actors for their snapshots in an actor of its own: ten thousand answers must not fill
// the mailbox of the actor that was asked, and one timer serves all of them.

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

/// Shows `actors[i]` when it does not answer.
using unheard_snapshot = std::function<Message<wire::Snapshot>(size_t i)>;

/// How long an actor may take to say what it does before it counts as stuck.
inline constexpr std::chrono::seconds answer_patience_of_monitors{2};

/// Answers one STATUS with `head`'s fields and the snapshots of `actors` as its children, and ends.
/// An actor that is silent for two seconds is shown by `unheard`. One that is gone is left out.
status_actor spawn_gatherer(caf::actor_system& system, std::vector<status_actor> actors,
                            Message<wire::Snapshot> head, unheard_snapshot unheard);

/// A snapshot in the state "stuck": asked at `asked_at` (seconds since 1970), and no answer yet.
Message<wire::Snapshot> stuck_snapshot(wire::Snapshot::Reader known, double asked_at);

/// What one of them says, or why it says nothing.
using snapshot_answer = tl::expected<Message<wire::Snapshot>, caf::error>;

/// Asks each of `actors` for `what`, a message that a snapshot answers. Calls `each` with the
/// number of an actor and its answer, as they come, and `done` once when all have answered or
/// `deadline` is over.
template <class Self, class Handle, class Atom, class Each, class Done>
void ask_each(Self* self, const std::vector<Handle>& actors, Atom what,
              std::chrono::milliseconds deadline, Each each, Done done) {
  struct round {
    Each each;
    Done done;
    size_t open;

    void close_one() {
      if (--open == 0) done();
    }
  };
  auto all = std::make_shared<round>(round{std::move(each), std::move(done), actors.size() + 1});
  for (size_t i = 0; i < actors.size(); ++i)
    self->request(actors[i], deadline, what)
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
