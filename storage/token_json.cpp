#include "storage/token_json.hpp"

#include <cmath>

#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

ordered_json token_audit_json(wire::Completion::Reader x) {
  auto audit = x.getAudit();
  auto state = audit.getState();
  return {{"audit", enum_name(capnp::DynamicEnum{std::move(state)})},
          {"kept", audit.getKept()},
          {"position", audit.getPosition()},
          {"route", x.getRoute().cStr()}};
}

namespace {

ordered_json ids_json(capnp::List<int32_t>::Reader xs) {
  auto result = ordered_json::array();
  for (auto x : xs) result.push_back(x);
  return result;
}

} // namespace

void add_token_lists(ordered_json& to, wire::Completion::Reader x) {
  if (x.getPromptTokenIds().size() > 0) to["prompt_token_ids"] = ids_json(x.getPromptTokenIds());
  if (x.getTokenIds().size() > 0) to["token_ids"] = ids_json(x.getTokenIds());
  if (x.getLogprobs().size() == 0) return;
  auto& logprobs = to["logprobs"] = ordered_json::array();
  for (double value : x.getLogprobs())
    logprobs.push_back(std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr));
}

ordered_json weight_versions_json(wire::Completion::Reader x) {
  auto result = ordered_json::array();
  for (auto span : x.getWeightVersions())
    result.push_back({{"version", span.getVersion().cStr()},
                      {"start", span.getStart()},
                      {"end", span.getEnd()}});
  return result;
}

} // namespace kernelmill
