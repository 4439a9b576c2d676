// The generations of a search: when the next one begins, and when there is none.

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_error.hpp"
#include "actors/run/run.hpp"

namespace kernelmill {

/// Whether the next episode opens a generation, and all of the one before is durable. What the
/// search chooses must not depend on which of its members came first.
bool batch_run_state::waits_for_generation() const {
  if (!services->search || stopped || paused || next >= counters.planned) return false;
  auto generation = static_cast<uint32_t>(next / plan.group_size);
  bool opens = next % plan.group_size == 0 && generation >= generations;
  return opens && (generation == 0 || groups[generation - 1].ended == plan.group_size);
}

void batch_run_state::ask_search() {
  if (asking_search) return;
  asking_search = true;
  auto generation = static_cast<uint32_t>(next / plan.group_size);
  self->request(services->search, settings->commit_deadline, atom::proceed_v, generation)
      .then(
          [this, generation](bool allowed) {
            asking_search = false;
            if (allowed) {
              generations = generation + 1;
              admit();
            } else {
              tell(log_level::info, "the budget of the search is used up after " +
                                        std::to_string(generation) + " generations");
              counters.planned = static_cast<uint32_t>(next);
            }
            finish_if_done();
          },
          [this](caf::error& why) {
            asking_search = false;
            stop("failed", from_caf(why));
            finish_if_done();
          });
}

/// A generation that faults of servers have ended as a whole has nothing that the next could go on
/// from; resume takes it up again.
void batch_run_state::end_broken_generation() {
  if (next % plan.group_size != 0 || next == 0) return;
  const auto& last = groups[next / plan.group_size - 1];
  if (last.ended == plan.group_size || paused) return;
  if (drop_departed(true); !live.empty()) return;
  stop("incomplete", std::nullopt);
}

} // namespace kernelmill
