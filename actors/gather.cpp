#include "actors/gather.hpp"

#include <algorithm>
#include <cmath>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "messages/base/clock.hpp"

namespace kernelmill {

namespace {

// CAF searches all open requests for the handler of an answer: ten thousand at once cost fifty
// million steps a round. When some actors are silent, the rest is asked after a quarter of the
// time.
constexpr size_t most_open = 32;
constexpr int ticks_of_patience = 4;

struct gatherer_state {
  std::vector<status_actor> actors;
  size_t next = 0; ///< of `actors`, to be asked
  size_t may_be_open = most_open;
  int ticks = 0;
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

using gatherer_pointer = gatherer_actor::stateful_pointer<gatherer_state>;

// Also ends it when no actor is left that could answer.
void ask_next(gatherer_pointer self) {
  auto& s = self->state;
  auto close_one = [self] {
    --self->state.open;
    ask_next(self);
  };
  // Without a timeout each: CAF's clock would keep ten thousand of them until they are due.
  for (; s.open < s.may_be_open && s.next < s.actors.size(); ++s.next, ++s.open)
    self->request(s.actors[s.next], caf::infinite, atom::status_v)
        .then(
            [self, i = s.next, close_one](const Message<wire::Snapshot>& x) {
              self->state.answers[i] = x;
              self->state.heard[i] = true;
              close_one();
            },
            [self, i = s.next, close_one](caf::error&) { // it has ended meanwhile
              self->state.heard[i] = true;
              close_one();
            });
  if (s.open > 0) return;
  s.deliver();
  self->quit();
}

void tick_later(gatherer_pointer self) {
  std::chrono::milliseconds patience = answer_patience_of_monitors;
  self->delayed_send(self, patience / ticks_of_patience, atom::tick_v);
}

gatherer_actor::behavior_type gatherer(gatherer_pointer self, std::vector<status_actor> actors,
                                       Message<wire::Snapshot> head, unheard_snapshot unheard) {
  self->state.actors = std::move(actors);
  self->state.head = std::move(head);
  self->state.unheard = std::move(unheard);
  return {
      [self](atom::status) {
        auto& s = self->state;
        s.answer = self->make_response_promise<Message<wire::Snapshot>>();
        auto result = s.answer;
        s.asked_at = seconds_since_1970();
        s.answers.resize(s.actors.size());
        s.heard.resize(s.actors.size());
        if (!s.actors.empty()) tick_later(self);
        ask_next(self);
        return result;
      },
      [self](atom::tick) {
        auto& s = self->state;
        if (++s.ticks < ticks_of_patience) {
          s.may_be_open = s.actors.size();
          tick_later(self);
          return ask_next(self);
        }
        s.deliver();
        self->quit();
      },
  };
}

} // namespace

status_actor spawn_gatherer(caf::actor_system& system, std::vector<status_actor> actors,
                            Message<wire::Snapshot> head, unheard_snapshot unheard) {
  return system.spawn(gatherer, std::move(actors), std::move(head), std::move(unheard));
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
