#include "launch/node/run_manifest.hpp"

#include <nlohmann/json.hpp>

namespace kernelmill {

namespace {

nlohmann::ordered_json layers_json(const std::vector<sandbox_layer>& layers) {
  auto result = nlohmann::ordered_json::array();
  static constexpr const char* states[] = {"active", "weaker", "missing"};
  for (auto& x : layers)
    result.push_back(
        {{"name", x.name}, {"state", states[static_cast<int>(x.state)]}, {"detail", x.detail}});
  return result;
}

} // namespace

nlohmann::ordered_json run_manifest(const run_plan& plan, const std::string& policy_kind,
                                    const policy_config& policy, const execution_facts& facts) {
  auto listed = nlohmann::ordered_json::array();
  for (auto& what : plan.groups) {
    if (!listed.empty() && listed.back()["id"] == what->id) continue;
    listed.push_back({{"id", what->id}, {"digest", what->digest}});
    if (!what->split.empty()) listed.back()["split"] = what->split;
  }
  return {
      {"config_digest", plan.config_digest},
      {"toolchain", facts.toolchain},
      {"slots", facts.slots},
      {"sandbox", layers_json(facts.layers)},
      {"policy", {{"kind", policy_kind}, {"base_url", policy.base_url}, {"model", policy.model}}},
      {"tasks", listed}};
}

} // namespace kernelmill
