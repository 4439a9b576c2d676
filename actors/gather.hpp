#pragma once

// Asks many actors for their snapshots at once.

#include <functional>
#include <memory>
#include <vector>

#include <caf/all.hpp>

#include "actors/snapshots.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// Answers with `head`'s fields and the snapshots of `whom` as its children. One that is silent
/// for two seconds is shown as silent.
template <class Self>
caf::result<Message<wire::Snapshot>> gather(Self* self, const std::vector<status_actor>& whom,
                                            Message<wire::Snapshot> head) {
  struct round {
    Message<wire::Snapshot> head;
    std::vector<Message<wire::Snapshot>> answers;
    size_t open = 0;
    caf::typed_response_promise<Message<wire::Snapshot>> answer;

    void close_one() {
      if (--open > 0) return;
      answer.deliver(build<wire::Snapshot>([this](wire::Snapshot::Builder x) {
        auto h = head.open();
        x.setActor(h->getActor());
        x.setId(h->getId());
        x.setState(h->getState());
        x.setSince(h->getSince());
        x.setDetail(h->getDetail());
        x.setNumbers(h->getNumbers());
        auto children = x.initChildren(static_cast<unsigned>(answers.size()));
        for (unsigned i = 0; i < children.size(); ++i)
          children.setWithCaveats(i, *answers[i].open());
      }));
    }
  };
  auto all = std::make_shared<round>();
  all->head = std::move(head);
  all->answers.resize(whom.size());
  all->open = whom.size() + 1;
  all->answer = self->template make_response_promise<Message<wire::Snapshot>>();
  for (size_t i = 0; i < whom.size(); ++i) {
    self->request(whom[i], std::chrono::seconds{2}, atom::status_v)
        .then(
            [all, i](const Message<wire::Snapshot>& x) {
              all->answers[i] = x;
              all->close_one();
            },
            [self, all, i](caf::error& why) {
              all->answers[i] =
                  snapshot_of("unknown", {}, "silent", self->system().render(why), {});
              all->close_one();
            });
  }
  all->close_one();
  return all->answer;
}

} // namespace kernelmill
