// Episodes that faults of machines and servers have ended, and what becomes of their groups.

#include <utility>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/run/run.hpp"
#include "actors/run/run_records.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

namespace {

// A policy server that answers no request is not worth asking a thousand times.
constexpr uint32_t departures_before_giving_up = 8;

// Turns after which a share of lost ones says something.
constexpr uint64_t turns_before_looking = 32;

} // namespace

// A lost turn ends its episode. An episode that had ended before a resume took no time here, and is
// not held against this machine.
void batch_run_state::look_at_lost_turns(wire::EpisodeOutcome::Reader outcome) {
  double seconds = 0;
  for (auto stage : outcome.getSeconds()) seconds += stage.getValue();
  if (seconds == 0) return;
  turns_seen += outcome.getTurns();
  turns_lost += outcome.getOutcome() == wire::Outcome::INFRASTRUCTURE &&
                outcome.getStopReason() != stopped_by_quorum;
  look_at_share_of_lost();
}

void batch_run_state::look_at_share_of_lost() {
  if (turns_seen < turns_before_looking ||
      static_cast<double>(turns_lost) <= plan.max_infrastructure * static_cast<double>(turns_seen))
    return;
  stop("failed",
       error{fault_class::infrastructure, "machine_faults",
             "failed to go on: faults of the machine or of a server lost " +
                 std::to_string(turns_lost) + " of " + std::to_string(turns_seen) +
                 " turns, and run.max_infrastructure is " +
                 std::to_string(plan.max_infrastructure).substr(0, 4),
             "`kernelmill show` says what they were; mend it, then start a new run: those "
             "episodes have ended"});
}

void batch_run_state::note_departure(wire::EpisodeOutcome::Reader outcome, uint32_t committed) {
  auto why = fault_of(outcome.getFault());
  counters.lost_open += is_lost(why, stopped == "failed" ? fault : std::nullopt);
  if (why.cls == fault_class::none) return; // cancelled, or the run ends
  auto ref = outcome.getEpisode();
  if (why.cls == fault_class::infrastructure) {
    groups[ref.getGroup()].departed[ref.getMember()] = committed;
    broken_groups.insert(ref.getGroup());
    losses.note_unanswered(ref.getTask().cStr());
  }
  bool hopeless = why.cls == fault_class::configuration ||
                  outcome.getStopReason() == "commit_failed" ||
                  ++departures_in_a_row >= departures_before_giving_up;
  if (!fault) fault = why;
  if (hopeless) stop("failed", std::move(why));
}

// -- members that are dropped -------------------------------------------------------------------

// Where episodes still end, the server is there, and was not for these. At the run's end the
// siblings that have ended say so.
void batch_run_state::drop_departed(bool at_end) {
  if (stopped || (departures_in_a_row > 0 && !at_end)) return;
  std::vector<uint32_t> complete;
  for (auto index : broken_groups) {
    const auto& group = groups[index];
    if (group.ended > 0 && group.ended + group.departed.size() == plan.group_size)
      complete.push_back(index);
  }
  for (auto index : complete) {
    broken_groups.erase(index);
    for (auto [member, turns] : std::exchange(groups[index].departed, {}))
      drop(index, member, turns);
  }
}

// It reads its own turns and closes with them, so its end is counted as any other.
void batch_run_state::drop(uint32_t group, uint32_t member, uint32_t turns) {
  auto how = std::make_shared<episode_settings>(*settings);
  how->resume = how->drop = true;
  episode_id id{plan.name, plan.groups[group]->id, group, member};
  services->log.write(log_level::warn, {"run", plan.name, short_name(id), {}},
                      "dropped: a fault of the machine or of a server has ended it; its group is "
                      "compared without it");
  --counters.left_open;
  --counters.lost_open;
  ++turns_seen;
  ++turns_lost;
  start_episode(uint64_t{group} * plan.group_size + member, std::move(how), turns);
  look_at_share_of_lost();
}

} // namespace kernelmill
