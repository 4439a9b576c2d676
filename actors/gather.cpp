#include "actors/gather.hpp"

#include <algorithm>
#include <cmath>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "messages/base/clock.hpp"

namespace kernelmill {

namespace {

struct gatherer_state {
  std::vector<Message<wire::Snapshot>> answers;
  std::vector<bool> heard;
  Message<wire::Snapshot> head;
  unheard_snapshot unheard;
  size_t open = 0;
  double asked_at = 0;
  bool over = false;
  caf::typed_response_promise<Message<wire::Snapshot>> answer;

  static inline const char* name = "gatherer";

  void deliver() {
    if (over) return;
    over = true;
    for (size_t i = 0; i < answers.size(); ++i)
      if (!heard[i]) answers[i] = stuck_snapshot(*unheard(i).open(), asked_at);
    std::erase_if(answers, [](const auto& x) { return x.empty(); });
    answer.deliver(with_children(head, answers));
  }
};

using gatherer_actor = status_actor::extend<caf::reacts_to<atom::tick>>;

gatherer_actor::behavior_type gatherer(gatherer_actor::stateful_pointer<gatherer_state> self,
                                       std::vector<status_actor> whom, Message<wire::Snapshot> head,
                                       unheard_snapshot unheard) {
  self->state.head = std::move(head);
  self->state.unheard = std::move(unheard);
  auto end = [self] {
    self->state.deliver();
    self->quit();
  };
  return {
      [self, whom = std::move(whom), end](atom::status) {
        auto& s = self->state;
        s.answer = self->make_response_promise<Message<wire::Snapshot>>();
        auto result = s.answer;
        s.asked_at = seconds_since_1970();
        s.answers.resize(whom.size());
        s.heard.resize(whom.size());
        s.open = whom.size() + 1;
        auto close_one = [self, end] {
          if (--self->state.open == 0) end();
        };
        // Without a timeout each: CAF's clock would keep ten thousand of them until they are due.
        for (size_t i = 0; i < whom.size(); ++i)
          self->request(whom[i], caf::infinite, atom::status_v)
              .then(
                  [self, i, close_one](const Message<wire::Snapshot>& x) {
                    self->state.answers[i] = x;
                    self->state.heard[i] = true;
                    close_one();
                  },
                  [self, i, close_one](caf::error&) { // it has ended meanwhile
                    self->state.heard[i] = true;
                    close_one();
                  });
        if (s.open > 1) self->delayed_send(self, answer_patience_of_monitors, atom::tick_v);
        close_one();
        return result;
      },
      [end](atom::tick) { end(); },
  };
}

} // namespace

status_actor spawn_gatherer(caf::actor_system& system, std::vector<status_actor> whom,
                            Message<wire::Snapshot> head, unheard_snapshot unheard) {
  return system.spawn(gatherer, std::move(whom), std::move(head), std::move(unheard));
}

Message<wire::Snapshot> stuck_snapshot(wire::Snapshot::Reader known, double asked_at) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor(known.getActor());
    x.setId(known.getId());
    x.setState("stuck");
    x.setSince(asked_at);
    auto silent = std::max(0.0, seconds_since_1970() - asked_at);
    auto text =
        "has not answered for " + std::to_string(static_cast<long long>(std::floor(silent))) + " s";
    if (known.getState().size() > 0) text += "; it was " + std::string{known.getState().cStr()};
    if (known.getDetail().size() > 0) text += ": " + std::string{known.getDetail().cStr()};
    x.setDetail(text);
    auto numbers = known.getNumbers();
    auto list = x.initNumbers(numbers.size() + 1);
    for (unsigned i = 0; i < numbers.size(); ++i) list.setWithCaveats(i, numbers[i]);
    list[numbers.size()].setName("oldest_seconds");
    list[numbers.size()].setValue(silent);
    x.setChildren(known.getChildren());
  });
}

} // namespace kernelmill
