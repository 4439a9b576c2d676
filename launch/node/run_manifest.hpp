#pragma once

// What a run's manifest says besides its configuration: tasks by digest, what builds and runs
// candidates, and the policy that answers.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/policy_client/policy_config.hpp"
#include "actors/run/run.hpp"
#include "launch/config/run_config.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/node/run_rights.hpp"

namespace kernelmill {

/// `rights` are of the plan's tasks; `retrieval` is retrieval_json()'s.
nlohmann::ordered_json run_manifest(const run_plan& plan, const policy_section& asked,
                                    const policy_config& policy, const execution_facts& facts,
                                    const run_rights& rights, nlohmann::ordered_json retrieval);

} // namespace kernelmill
