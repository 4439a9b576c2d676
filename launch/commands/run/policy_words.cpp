#include "launch/commands/run/policy_words.hpp"

#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

std::vector<std::string> policy_overrides(const cli::invocation& in,
                                          const std::string& kind_before) {
  if (!in.has("--policy")) return {};
  const auto& policy = in.value("--policy");
  auto quoted = nlohmann::json(policy).dump();
  if (!policy.starts_with("http://") && !policy.starts_with("https://"))
    return {"policy.kind=scripted", "policy.script=" + quoted};
  std::vector<std::string> result{"policy.base_url=" + quoted};
  if (kind_before == "scripted" || kind_before == "attached")
    result.emplace_back("policy.kind=openai");
  return result;
}

cli::option_spec policy_option(const char* doc) {
  return {"--policy", "URL|FILE", doc, "", false, {}, cli::completes::nothing};
}

} // namespace kernelmill::commands
