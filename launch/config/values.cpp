// What a key takes, in words and as a test.

#include <cmath>

#include <fmt/format.h>

#include "launch/config/keys.hpp"
#include "messages/base/suggest.hpp"

namespace kernelmill {

namespace {

std::string number_text(double x) {
  return std::abs(x) < 1e16 && std::floor(x) == x ? fmt::format("{:.0f}", x) : fmt::format("{}", x);
}

std::string range_text(const config_key& key) {
  if (std::isinf(key.low)) return {};
  return key.open_low
             ? fmt::format(" above {} and at most {}", number_text(key.low), number_text(key.high))
             : fmt::format(" from {} to {}", number_text(key.low), number_text(key.high));
}

std::string choice_text(const config_key& key) {
  std::string result;
  for (size_t i = 0; i < key.choices.size(); ++i) {
    if (i > 0) result += i + 1 == key.choices.size() ? " or " : ", ";
    result += "\"" + key.choices[i] + "\"";
  }
  return result;
}

std::string shown(const config_key& key, const nlohmann::json& value) {
  if (key.sensitive) return "the value";
  auto text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string wrong_kind(const config_key& key, const nlohmann::json& value) {
  return fmt::format("it takes {}, not {}", describe_values(key),
                     key.sensitive
                         ? std::string{"this"}
                         : fmt::format("the {} {}", value.type_name(), shown(key, value)));
}

std::string check_number(const config_key& key, const nlohmann::json& value) {
  // 64 is written as 64.0 by some tools, and means the same; 64.5 does not.
  auto x = value.get<double>();
  if (key.kind == value_kind::integer && std::floor(x) != x) return wrong_kind(key, value);
  if (!std::isfinite(x) || x < key.low || x > key.high || (key.open_low && x == key.low))
    return fmt::format("{} is out of range; it takes {}", shown(key, value), describe_values(key));
  return {};
}

std::string check_text(const config_key& key, const nlohmann::json& value) {
  const auto& text = value.get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) return "it holds a NUL byte";
  if (key.matches && !key.matches(text)) {
    if (key.pattern.starts_with("^(https"))
      return "it takes http:// or https://, a host and a path, without a user name or password";
    if (key.sensitive) return "it takes the name of an environment variable, not the key itself";
    return fmt::format("{} does not match {}", shown(key, value), key.pattern);
  }
  if (key.choices.empty()) return {};
  for (const auto& choice : key.choices)
    if (choice == text) return {};
  return fmt::format("{} is none of {}{}", shown(key, value), choice_text(key),
                     did_you_mean(text, key.choices));
}

} // namespace

std::string describe_values(const config_key& key) {
  switch (key.kind) {
    case value_kind::boolean: return "true or false";
    case value_kind::integer: return "an integer" + range_text(key);
    case value_kind::number: return "a number" + range_text(key);
    case value_kind::optional_number: return "a number" + range_text(key) + ", or null";
    case value_kind::text:
      if (!key.choices.empty()) return choice_text(key);
      return key.path == path_kind::none   ? "a string"
             : key.path == path_kind::file ? "the path of a file"
                                           : "the path of a directory";
    case value_kind::text_list:
      return key.choices.empty() ? "a list of strings" : "a list of " + choice_text(key);
  }
  return {};
}

std::string check_value(const config_key& key, const nlohmann::json& value) {
  switch (key.kind) {
    case value_kind::boolean: return value.is_boolean() ? std::string{} : wrong_kind(key, value);
    case value_kind::optional_number:
      if (value.is_null()) return {};
      [[fallthrough]];
    case value_kind::integer:
    case value_kind::number:
      return value.is_number() ? check_number(key, value) : wrong_kind(key, value);
    case value_kind::text:
      return value.is_string() ? check_text(key, value) : wrong_kind(key, value);
    case value_kind::text_list:
      if (!value.is_array()) return wrong_kind(key, value);
      for (const auto& entry : value) {
        if (!entry.is_string()) return wrong_kind(key, value);
        if (auto problem = check_text(key, entry); !problem.empty()) return problem;
      }
      return {};
  }
  return {};
}

std::string config_section_doc(const std::string& section) {
  static const std::pair<const char*, const char*> docs[] = {
      {"run", "The run itself."},
      {"tasks", "Tasks, groups and turns."},
      {"policy", "The policy server."},
      {"policy.sampling", "How completions are sampled."},
      {"retrieval", "Examples shown in prompts."},
      {"retrieval.embedder", "The embedder of texts."},
      {"compile", "Builds of candidates."},
      {"evaluation", "Runs of candidates."},
      {"evaluation.timing", "Timing of correct candidates, interleaved with the baseline."},
      {"profile", "Counters of candidates."},
      {"episode", "Turns, their limits and their returns."},
      {"tools", "What the tool calls of an episode of mode `tools` may take."},
      {"reward", "The reward of a turn."},
      {"storage", "The lineage."},
      {"log", "The log of a run, or of a node: docs/reference/logs.md."},
      {"hooks", "Notifications of a run's events: docs/how-to/get-told.md."},
  };
  for (const auto& [name, doc] : docs)
    if (section == name) return doc;
  return {};
}

} // namespace kernelmill
