#include "launch/node/run_manifest.hpp"

#include "messages/base/json_value.hpp"

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

nlohmann::ordered_json run_manifest(const run_plan& plan, const policy_section& asked,
                                    const policy_config& policy, const execution_facts& facts,
                                    const run_rights& rights, nlohmann::ordered_json retrieval) {
  auto listed = nlohmann::ordered_json::array();
  for (auto& what : plan.groups) {
    if (!listed.empty() && listed.back()["id"] == what->id) continue;
    listed.push_back({{"id", what->id}, {"digest", what->digest}});
    if (!what->split.empty()) listed.back()["split"] = what->split;
    // Frozen: files of the task may change or go after the run.
    const auto* right = rights.find(what->id);
    if (!what->source.empty())
      listed.back()["source"] = what->source;
    else if (right && !right->train.source.empty())
      listed.back()["source"] = right->train.source;
    if (right && !right->train.licence.empty()) listed.back()["licence"] = right->train.licence;
  }
  return {{"config_digest", plan.config_digest},
          {"toolchain", facts.toolchain},
          {"slots", facts.slots},
          {"sandbox", layers_json(facts.layers)},
          {"policy",
           {{"kind", asked.kind},
            {"base_url", policy.base_url},
            {"model", policy.model},
            {"licence", asked.licence}}},
          {"tasks", listed},
          {"accepted_terms", rights.accepted},
          {"retrieval", std::move(retrieval)}};
}

} // namespace kernelmill
