// What an episode says of itself in its STATUS and in the log.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include <caf/all.hpp>

#include "actors/episode/episode.hpp"
#include "actors/episode/episode_records.hpp"

namespace kernelmill {

const char* to_string(episode_phase x) noexcept {
  switch (x) {
    case episode_phase::admitted: return "admitted";
    case episode_phase::recalling: return "recalling";
    case episode_phase::retrieving: return "retrieving";
    case episode_phase::thinking: return "thinking";
    case episode_phase::building: return "building";
    case episode_phase::evaluating: return "evaluating";
    case episode_phase::profiling: return "profiling";
    case episode_phase::judging: return "judging";
    case episode_phase::committing: return "committing";
    case episode_phase::closing: return "closing";
    case episode_phase::ended: return "ended";
  }
  return "unknown";
}

void episode_state::tell(log_level level, const std::string& what) const {
  services->log.write(level, {"episode", *where.run, short_name(id()), turn}, what);
}

void episode_state::tell_verdict(wire::Verdict::Reader verdict) const {
  bool ours = verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE;
  auto level = ours ? log_level::warn : log_level::debug;
  if (!services->log.takes(level)) return;
  auto text = "judged: " + std::string{verdict.getCategory().cStr()};
  if (auto fault = verdict.getFault(); fault.getMessage().size() > 0)
    text += ": " + std::string{fault.getMessage().cStr()};
  tell(level, text);
}

bool episode_state::waits_for_answer() const {
  return phase != episode_phase::admitted && phase != episode_phase::ended;
}

// NaN: no turn has a reward.
double episode_state::best_reward() const {
  auto result = std::numeric_limits<double>::quiet_NaN();
  for (const auto& x : turns)
    if (x.paid) result = std::fmax(result, x.reward);
  return result;
}

double episode_state::best_speedup_low() const {
  double result = 0;
  for (const auto& x : turns)
    if (x.accepted && !x.evidence.copied) result = std::max(result, x.speedup_low);
  return result;
}

Message<wire::Snapshot> episode_state::snapshot() const {
  return build<wire::Snapshot>([this](wire::Snapshot::Builder x) {
    x.setActor("episode");
    x.setId(short_name(id()));
    x.setState(to_string(phase));
    x.setSince(wall_seconds(phase_since));
    x.setDetail(where.what->id + ", turn " + std::to_string(turn + 1) + " of " +
                std::to_string(settings->max_turns));
    const std::pair<const char*, double> all[] = {
        {"turns_committed", static_cast<double>(turns.size())},
        {"ordinal", static_cast<double>(where.ordinal)},
        {"turn", static_cast<double>(turn)},
        {"max_turns", static_cast<double>(settings->max_turns)},
        {"deadline_seconds", waits_for_answer() ? -seconds_since(answer_due) : 0},
        {"episode_seconds", phase == episode_phase::admitted ? 0 : seconds_since(started)},
        {"episode_deadline_seconds",
         std::chrono::duration<double>(settings->episode_deadline).count()},
        {"best_reward", best_reward()},
        {"best_speedup_low", best_speedup_low()},
        {"mailbox", static_cast<double>(self->mailbox().size())},
        {"actor", static_cast<double>(self->id())}};
    auto numbers = x.initNumbers(static_cast<unsigned>(std::size(all)));
    for (unsigned i = 0; i < numbers.size(); ++i) {
      numbers[i].setName(all[i].first);
      numbers[i].setValue(all[i].second);
    }
  });
}

} // namespace kernelmill
