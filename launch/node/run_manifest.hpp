#pragma once

// What a run's manifest says besides its configuration: tasks by digest, what builds and runs
// candidates, and who answers.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/policy_client/policy_config.hpp"
#include "actors/run/run.hpp"
#include "launch/node/hosted_run.hpp"

namespace kernelmill {

/// `policy_kind` is the configuration's policy.kind.
nlohmann::ordered_json run_manifest(const run_plan& plan, const std::string& policy_kind,
                                    const policy_config& policy, const execution_facts& facts);

} // namespace kernelmill
