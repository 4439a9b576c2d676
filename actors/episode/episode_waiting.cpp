// How long an episode waits for an answer, and when it gives up.

#include <chrono>
#include <string_view>

#include <caf/all.hpp>

#include "actors/episode/episode.hpp"
#include "actors/episode/episode_records.hpp"

namespace kernelmill {

namespace {

// A cancelled episode waits this long for a compiler or a GPU that still works for it.
constexpr std::chrono::seconds cancel_patience{8};

// The time in which the cluster reports on its queue.
constexpr std::chrono::seconds line_patience{30};

// Whether a worker serves the queue of this kind.
bool is_worked_off(wire::Snapshot::Reader cluster, std::string_view kind) {
  for (auto queue : cluster.getChildren()) {
    if (queue.getActor() != "queue" || kind != queue.getId().cStr()) continue;
    for (auto x : queue.getNumbers())
      if (x.getName() == "credits") return x.getValue() > 0;
  }
  return false;
}

} // namespace

void episode_state::give_up_waiting(const caf::error& why) {
  ++question; // an answer that comes now is ignored
  auto lost = std::move(on_loss);
  lost(why);
}

bool episode_state::waits_for_work() const {
  return phase == episode_phase::building || phase == episode_phase::evaluating ||
         phase == episode_phase::profiling;
}

void episode_state::look_at_clock() {
  if (phase == episode_phase::admitted || phase == episode_phase::ended) return;
  if (cancelled && waits_for_work() && now() >= cancelled_at + cancel_patience)
    return leave(wire::Outcome::INFRASTRUCTURE, cancellation());
  if (now() < answer_due) return;
  // A profile is advice, so the episode does not wait long for it.
  bool in_line = phase == episode_phase::building || phase == episode_phase::evaluating;
  if (in_line && !line_asked && !over_deadline()) return ask_about_line();
  give_up_waiting(caf::make_error(caf::sec::request_timeout));
}

// A job that waits behind others is not late: its own time begins with its lease, and the cluster
// ends a lease that takes too long. It is late when no worker serves its queue, or when the cluster
// does not answer.
void episode_state::ask_about_line() {
  line_asked = true;
  answer_due = now() + line_patience;
  bool builds = phase == episode_phase::building;
  auto hear = [this, number = question, builds](const Message<wire::Snapshot>& cluster) {
    if (number != question) return;
    if (!is_worked_off(*cluster.open(), builds ? "build" : "evaluate"))
      return give_up_waiting(caf::make_error(caf::sec::request_timeout));
    line_asked = false;
    answer_due = now() + settings->lease_slack;
  };
  auto lose = [this, number = question](caf::error& why) {
    if (number == question) give_up_waiting(why);
  };
  // No timeout of CAF's: look_at_clock() looks at this one too.
  if (builds)
    self->request(services->compiler, caf::infinite, atom::status_v).then(hear, lose);
  else
    self->request(services->runner, caf::infinite, atom::status_v).then(hear, lose);
}

} // namespace kernelmill
