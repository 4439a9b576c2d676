#pragma once

// Values that rows of several forms have in common.

#include <cmath>
#include <optional>

#include "messages/base/json_value.hpp"
#include "storage/export/rows/material.hpp"

namespace kernelmill::exports {

inline nlohmann::ordered_json number(std::optional<double> x) {
  return x && std::isfinite(*x) ? nlohmann::ordered_json(*x) : nlohmann::ordered_json(nullptr);
}

inline nlohmann::ordered_json text_or_null(const std::string& x) {
  return x.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(x);
}

/// What its reward is the sum of; empty without a reward.
nlohmann::ordered_json parts_json(const turn& x);

nlohmann::ordered_json speedup_json(const std::optional<speedup>& x);

/// {"role": ..., "content": ...}, and of tools `tool_calls` or `tool_call_id`, as OpenAI has them.
nlohmann::ordered_json message_json(const message& x);

/// The same of each.
nlohmann::ordered_json messages_json(const std::vector<message>& xs);

/// "accepted", "rejected", "infrastructure", "open".
const char* outcome_word(wire::Outcome x) noexcept;

template <class T>
nlohmann::ordered_json list(const std::vector<T>& xs) {
  auto result = nlohmann::ordered_json::array();
  auto& to = result.get_ref<nlohmann::ordered_json::array_t&>();
  to.reserve(xs.size());
  for (const auto& x : xs) to.emplace_back(x);
  return result;
}

/// Returns the number with the fewest digits that, read as a double and rounded, gives the same
/// float, bit by bit: half the bytes of the float's own double.
double short_number(float x);

nlohmann::ordered_json floats(const std::vector<float>& xs);

nlohmann::ordered_json spans_json(const std::vector<weight_span>& xs);

/// Adds run, task, split, verb, operator_family, backend and contract.
void add_task(nlohmann::ordered_json& to, const group& from);

} // namespace kernelmill::exports
