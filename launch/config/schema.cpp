#include "launch/config/schema.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/config/keys.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

json number_schema(const config_key& key, const char* type) {
  json result;
  if (key.kind == value_kind::optional_number)
    result["type"] = {type, "null"};
  else
    result["type"] = type;
  auto bound = [&](double x) -> json {
    if (key.kind == value_kind::integer) return static_cast<int64_t>(x);
    return x;
  };
  if (std::isfinite(key.low))
    result[key.open_low ? "exclusiveMinimum" : "minimum"] = bound(key.low);
  if (std::isfinite(key.high)) result["maximum"] = bound(key.high);
  return result;
}

json text_schema(const config_key& key) {
  json result;
  result["type"] = "string";
  if (!key.choices.empty()) result["enum"] = key.choices;
  if (!key.pattern.empty()) result["pattern"] = key.pattern;
  return result;
}

json value_schema(const config_key& key) {
  switch (key.kind) {
    case value_kind::boolean: return {{"type", "boolean"}};
    case value_kind::integer: return number_schema(key, "integer");
    case value_kind::number:
    case value_kind::optional_number: return number_schema(key, "number");
    case value_kind::text: return text_schema(key);
    case value_kind::text_list: return {{"type", "array"}, {"items", text_schema(key)}};
  }
  return {};
}

json object_schema(const std::string& section) {
  json result;
  result["type"] = "object";
  if (auto doc = config_section_doc(section); !doc.empty()) result["description"] = doc;
  result["additionalProperties"] = false;
  result["properties"] = json::object();
  return result;
}

/// A cell of a Markdown table.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

std::string default_text(const config_key& key) {
  auto value = key.default_value();
  return value.is_string() && value.get_ref<const std::string&>().empty()
             ? "empty"
             : "`" + value.dump() + "`";
}

constexpr const char* reference_head = R"(# Configuration keys

Made by `kernelmill config schema --markdown` from the table in `launch/config/keys.cpp`; a test checks that it is up to date.

A configuration is JSON with comments (`//` and `/* */`). Later layers win: defaults, the files of the command
line from left to right, environment variables, overrides. Objects merge key by key; lists replace each other.
A path in a file starts at the folder of that file; a path in an override or in the environment starts at the
working directory. `kernelmill config show --resolved --origin FILE...` prints every value and where it comes from.

| override | meaning |
|---|---|
| `a.b=value` | sets a key; the value is JSON when it is JSON, else the text itself |
| `+a.b=value` | the same, for those who come from Hydra |
| `~a.b` | takes a key or a whole section back to its default |

The environment variable of a key is `KERNELMILL_`, then the key in capitals with `__` for each dot:
`KERNELMILL_POLICY__BASE_URL`. API keys are never part of a configuration: it holds the name of a variable or
of a file that holds the key.

Timeouts nest, and this is checked: `policy.timeout_ms`, `compile.deadline_ms` and `evaluation.deadline_ms` are each
below `episode.turn_deadline_ms`, and that is below `episode.deadline_ms`.
)";

} // namespace

json config_schema() {
  json result;
  result["$schema"] = "http://json-schema.org/draft-07/schema#";
  result["title"] = "Kernelmill run configuration";
  result.update(object_schema({}));
  result["properties"]["$schema"] = {{"type", "string"}};
  for (const auto& key : config_keys()) {
    auto* at = &result;
    size_t begin = 0;
    for (size_t dot; (dot = key.name.find('.', begin)) != std::string::npos; begin = dot + 1) {
      auto& next = (*at)["properties"][key.name.substr(begin, dot - begin)];
      if (next.is_null()) next = object_schema(key.name.substr(0, dot));
      at = &next;
    }
    auto schema = value_schema(key);
    schema["description"] = key.doc;
    schema["default"] = json(key.default_value());
    (*at)["properties"][key.name.substr(begin)] = std::move(schema);
  }
  return result;
}

std::string config_reference() {
  std::string result = reference_head;
  std::string group;
  for (const auto& key : config_keys()) {
    auto dot = key.name.rfind('.');
    auto section = dot == std::string::npos ? std::string{"top level"} : key.name.substr(0, dot);
    if (section != group) {
      group = section;
      result += fmt::format("\n## {}\n", section);
      if (auto doc = config_section_doc(section); !doc.empty()) result += doc + "\n";
      result += "\n| key | takes | default | meaning |\n|---|---|---|---|\n";
    }
    result += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(describe_values(key)),
                          cell(default_text(key)), cell(key.doc));
  }
  return result;
}

} // namespace kernelmill
