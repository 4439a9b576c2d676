#pragma once

// Asks many actors for their snapshots at once.

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <tl/expected.hpp>

#include "actors/snapshots.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

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

/// Answers with `head`'s fields and the snapshots of `whom` as its children. One that is silent
/// for two seconds is shown as silent.
template <class Self>
caf::result<Message<wire::Snapshot>> gather(Self* self, const std::vector<status_actor>& whom,
                                            Message<wire::Snapshot> head) {
  auto answers = std::make_shared<std::vector<Message<wire::Snapshot>>>(whom.size());
  auto answer = self->template make_response_promise<Message<wire::Snapshot>>();
  ask_each(
      self, whom, atom::status_v, std::chrono::seconds{2},
      [self, answers](size_t i, const snapshot_answer& x) {
        (*answers)[i] =
            x ? *x : snapshot_of("unknown", {}, "silent", self->system().render(x.error()), {});
      },
      [head = std::move(head), answers, answer]() mutable {
        answer.deliver(with_children(head, *answers));
      });
  return answer;
}

} // namespace kernelmill
