#pragma once

// What a run stores and answers, built from plain values.

#include <map>
#include <optional>
#include <span>
#include <string>

#include "actors/run/run.hpp"

namespace kernelmill {

/// Whether an episode has a return that its siblings' can be held against: not where the
/// infrastructure lost it, nor where the machine could not time one of its turns.
bool is_comparable(wire::EpisodeOutcome::Reader x);

/// Whether an episode that left without a record of its own counts as lost to the infrastructure:
/// a fault of a machine, of a server or of their configuration ended it, or ended its run while it
/// was open (`end_of_run`). One that the user's cancel ended is open and not lost.
bool is_lost(const error& why, const std::optional<error>& end_of_run);

void count_outcome(run_counters& counters, run_counts& kinds, wire::EpisodeOutcome::Reader outcome);

/// How an episode that died without a word is reported.
Message<wire::EpisodeOutcome> lost_episode(const episode_assignment& where, const std::string& why);

Message<wire::Record> group_record(const run_plan& plan, uint32_t group,
                                   std::span<const std::optional<double>> returns);

/// The run's record of a state; `counts` of a finished one, `why` of one that failed, and of an end
/// how many episodes it left open as `lost`, which its readiness says as {"lost_open": 3}.
Message<wire::Record> run_record(const run_plan& plan, const std::string& state,
                                 const run_counts* counts, const std::optional<error>& why,
                                 uint32_t lost = 0);

Message<wire::RunSummary> run_summary(const run_plan& plan, const run_counters& counters,
                                      const std::string& outcome, double seconds,
                                      const std::map<std::string, double>& stages,
                                      const std::vector<std::string>& alarms,
                                      const std::optional<error>& fault);

} // namespace kernelmill
