#include "storage/export/rows/row_values.hpp"

#include <charconv>

namespace kernelmill::exports {

using nlohmann::ordered_json;

ordered_json parts_json(const turn& x) {
  auto result = ordered_json::array();
  if (!x.reward) return result;
  for (const auto& part : x.components) // 0 has no sign here
    result.push_back({{"name", part.name}, {"value", number(part.value.value_or(0) + 0.0)}});
  return result;
}

ordered_json speedup_json(const std::optional<speedup>& x) {
  if (!x) return nullptr;
  return {{"estimate", number(x->estimate)}, {"low", number(x->low)}, {"high", number(x->high)}};
}

ordered_json message_json(const message& x) {
  ordered_json result = {{"role", x.role}, {"content", x.content}};
  for (const auto& call : x.calls)
    result["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  if (!x.call_id.empty()) result["tool_call_id"] = x.call_id;
  return result;
}

ordered_json messages_json(const std::vector<message>& xs) {
  auto result = ordered_json::array();
  for (const auto& x : xs) result.push_back(message_json(x));
  return result;
}

const char* outcome_word(wire::Outcome x) noexcept {
  switch (x) {
    case wire::Outcome::ACCEPTED: return "accepted";
    case wire::Outcome::REJECTED: return "rejected";
    case wire::Outcome::OPEN: return "open";
    case wire::Outcome::INFRASTRUCTURE: break;
  }
  return "infrastructure";
}

double short_number(float x) {
  char text[32];
  auto [end, code] = std::to_chars(text, text + sizeof text, x);
  double result = x;
  std::from_chars(text, end, result);
  return static_cast<float>(result) == x ? result : static_cast<double>(x);
}

ordered_json floats(const std::vector<float>& xs) {
  auto result = ordered_json::array();
  auto& to = result.get_ref<ordered_json::array_t&>();
  to.reserve(xs.size());
  for (auto x : xs) to.emplace_back(short_number(x));
  return result;
}

ordered_json spans_json(const std::vector<weight_span>& xs) {
  auto result = ordered_json::array();
  for (const auto& x : xs)
    result.push_back({{"version", x.version}, {"start", x.start}, {"end", x.end}});
  return result;
}

void add_task(ordered_json& to, const group& from) {
  to["run"] = from.run;
  to["task"] = from.task;
  to["split"] = from.split;
  to["verb"] = from.verb;
  to["operator_family"] = from.operator_family;
  to["backend"] = from.backend;
  to["contract"] = from.contract;
}

} // namespace kernelmill::exports
