#pragma once

// From a configuration to the plain values that actors take. Everything that can be wrong with a
// configuration is found here, before anything starts.

#include <memory>
#include <string>
#include <vector>

#include "actors/episode/episode.hpp"
#include "actors/governance/judge.hpp"
#include "actors/policy_client/policy_config.hpp"
#include "actors/run/run.hpp"
#include "actors/search/guided_search.hpp"
#include "launch/config/run_config.hpp"
#include "launch/machine/backend.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Loads the tasks that the configuration names, in the order of their ids, for a backend. Fails
/// with "config_inconsistent" when a turn has no time for what a task of the contract `torch` may
/// take.
expected<std::vector<std::shared_ptr<const task>>> load_tasks(const run_config& config,
                                                              const chosen_backend& backend);

/// Whether any of them is of the contract `torch`, and a Python is needed.
bool any_torch(const std::vector<std::shared_ptr<const task>>& tasks);

expected<governance_config> governance_of(const run_config& config);
expected<policy_config> policy_of(const run_config& config);
expected<advantage_kind> advantage_of(const std::string& name);
double gamma_of(const run_config& config); ///< of the mode that it names
std::shared_ptr<const episode_settings> settings_of(const run_config& config,
                                                    const std::string& backend,
                                                    const reward_config& rewards, bool resume);

/// REQUIRES: config.search.on().
search_settings search_settings_of(const run_config& config, profile_words profile);

/// Each task as many times as the configuration asks for groups, task by task.
run_plan plan_of(const run_config& config, const std::vector<std::shared_ptr<const task>>& tasks);

} // namespace kernelmill
