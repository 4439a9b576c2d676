#pragma once

// How an episode asks; for the sources of episode_state alone.

#include <chrono>

#include <caf/error.hpp>
#include <caf/timespan.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/episode/episode.hpp"

namespace kernelmill {

template <class Answer, class Handle, class F, class... Ts>
void episode_state::ask(const Handle& dest, std::chrono::milliseconds timeout,
                        loss_handler when_lost, F on_answer, const Ts&... request) {
  auto number = ++question;
  answer_due = now() + timeout;
  line_asked = false;
  on_loss = std::move(when_lost);
  // Finite all the same: look_at_clock() gives up at answer_due (docs/decisions/0006).
  self->request(dest, caf::infinite, request...)
      .then(
          [this, number, on_answer = std::move(on_answer)](const Answer& answer) {
            if (number == question) on_answer(answer);
          },
          [this, number](caf::error& why) {
            if (number == question) give_up_waiting(why);
          });
}

} // namespace kernelmill
