#include "actors/run/run_records.hpp"

#include "actors/episode/episode_score.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

#include <chrono>
#include <cmath>
#include <limits>

namespace kernelmill {

bool is_comparable(wire::EpisodeOutcome::Reader x) {
  return x.getOutcome() != wire::Outcome::INFRASTRUCTURE && std::isfinite(x.getReturn());
}

bool is_lost(const error& why, const std::optional<error>& end_of_run) {
  auto is_ours = [](const error& x) {
    return x.cls == fault_class::infrastructure || x.cls == fault_class::configuration;
  };
  bool told_to_end = why.cls == fault_class::none;
  return is_ours(told_to_end && end_of_run ? *end_of_run : why);
}

void count_outcome(run_counters& counters, run_counts& kinds,
                   wire::EpisodeOutcome::Reader outcome) {
  if (outcome.getStopReason() == stopped_by_quorum) {
    ++counters.dropped;
    return;
  }
  counters.not_timed += outcome.getNotTimed();
  if (outcome.getOutcome() != wire::Outcome::INFRASTRUCTURE && !is_comparable(outcome)) {
    ++counters.unpaid;
    ++kinds.unpaid;
  }
  switch (outcome.getOutcome()) {
    case wire::Outcome::ACCEPTED: ++counters.accepted; break;
    case wire::Outcome::OPEN: // of a turn, never of an episode
    case wire::Outcome::REJECTED: ++counters.rejected; break;
    case wire::Outcome::INFRASTRUCTURE:
      ++counters.closed_as_lost;
      ++kinds.infrastructure;
      break;
  }
  switch (outcome.getReadiness()) {
    case wire::EpisodeKind::USABLE_POSITIVE_SFT: ++kinds.usable_positive_sft; break;
    case wire::EpisodeKind::USABLE_NEGATIVE_DEBUG: ++kinds.usable_negative_debug; break;
    case wire::EpisodeKind::USABLE_NEGATIVE_TRANSITION: ++kinds.usable_negative_transition; break;
    case wire::EpisodeKind::BENCHMARK_ONLY: ++kinds.benchmark_only; break;
    case wire::EpisodeKind::UNUSABLE: ++kinds.unusable; break;
  }
}

Message<wire::EpisodeOutcome> lost_episode(const episode_assignment& where,
                                           const std::string& why) {
  return build<wire::EpisodeOutcome>([&](wire::EpisodeOutcome::Builder x) {
    auto ref = x.initEpisode();
    ref.setRun(*where.run);
    ref.setTask(where.what->id);
    ref.setGroup(where.group);
    ref.setMember(where.member);
    x.setOutcome(wire::Outcome::INFRASTRUCTURE);
    x.setStopReason("episode_lost");
    set_fault(x.initFault(), {fault_class::infrastructure, "episode_lost",
                              "failed to finish an episode: its actor ended with " + why,
                              "`kernelmill resume` takes it up again"});
  });
}

Message<wire::Record> group_record(const run_plan& plan, uint32_t group,
                                   std::span<const std::optional<double>> returns) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto x = record.initGroup();
    x.setRun(plan.name);
    x.setTask(plan.groups[group]->id);
    x.setGroup(group);
    score_group(x, returns, plan.advantages);
    x.setCommittedAt(seconds_since_1970());
  });
}

namespace {

nlohmann::ordered_json use_json(const run_readiness::use& x) {
  return {{"eligible", x.eligible}, {"reasons", x.reasons}};
}

std::string readiness_text(const run_counts& counts) {
  auto readiness = readiness_of_run(counts);
  return nlohmann::ordered_json{
      {"benchmark_reporting", use_json(readiness.benchmark_reporting)},
      {"sft_collection", use_json(readiness.sft_collection)},
      {"rl_reward_trace", use_json(readiness.rl_reward_trace)},
      {"episodes", counts.episodes},
      {"turns", counts.turns},
      {"infrastructure", counts.infrastructure},
      {"unpaid", counts.unpaid},
      {"usable_positive_sft", counts.usable_positive_sft},
      {"usable_negative_debug", counts.usable_negative_debug},
      {"usable_negative_transition", counts.usable_negative_transition},
      {"benchmark_only", counts.benchmark_only},
      {"unusable", counts.unusable},
      {"alarms", counts.alarms},
  }
      .dump();
}

} // namespace

Message<wire::Record> run_record(const run_plan& plan, const std::string& state,
                                 const run_counts* counts, const std::optional<error>& why,
                                 uint32_t lost) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto x = record.initRun();
    x.setRun(plan.name);
    x.setConfigDigest(plan.config_digest);
    x.setState(state);
    x.setOpening(plan.opening);
    x.setAt(seconds_since_1970());
    if (lost > 0) x.setReadiness(nlohmann::ordered_json{{"lost_open", lost}}.dump());
    if (counts) x.setReadiness(readiness_text(*counts));
    if (why) set_fault(x.initFault(), *why);
  });
}

Message<wire::RunSummary> run_summary(const run_plan& plan, const run_counters& counters,
                                      const std::string& outcome, double seconds,
                                      const std::map<std::string, double>& stages,
                                      const std::vector<std::string>& alarms,
                                      const std::optional<error>& fault) {
  return build<wire::RunSummary>([&](wire::RunSummary::Builder x) {
    x.setRun(plan.name);
    x.setDirectory(plan.directory);
    auto totals = x.initTotals();
    totals.setGroups(static_cast<uint32_t>(plan.groups.size()));
    totals.setEpisodes(counters.ended);
    totals.setTurns(static_cast<uint32_t>(counters.turns));
    totals.setAccepted(counters.accepted);
    totals.setRejected(counters.rejected);
    totals.setInfrastructure(counters.infrastructure());
    totals.setDropped(counters.dropped);
    totals.setNotTimed(counters.not_timed);
    totals.setUnpaid(counters.unpaid);
    x.setOutcome(outcome);
    x.setSeconds(seconds);
    auto list = x.initStages(static_cast<unsigned>(stages.size()));
    unsigned i = 0;
    for (auto& [stage, value] : stages) {
      list[i].setName(stage);
      list[i].setValue(value);
      list[i++].setUnit("s");
    }
    if (fault) set_fault(x.initFault(), *fault);
    auto said = x.initAlarms(static_cast<unsigned>(alarms.size()));
    for (unsigned n = 0; n < said.size(); ++n) said.set(n, alarms[n]);
  });
}

} // namespace kernelmill
