#include "launch/import/yaml.hpp"

#include <charconv>
#include <optional>

#include <yaml-cpp/yaml.h>

#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t most_values = 100'000;
constexpr int deepest_yaml = 64;

struct yaml_walk {
  std::string place;
  size_t values = 0;
};

tl::unexpected<error> bad_yaml(const std::string& place, const YAML::Mark& at,
                               const std::string& cause) {
  auto line = at.is_null() ? std::string{} : ", line " + std::to_string(at.line + 1);
  return configuration_error("bad_problem", "failed to read " + place + line + ": " + cause,
                             "fix the file, or leave its problem out");
}

template <class Number>
std::optional<Number> whole(const std::string& text) {
  Number x{};
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return x;
}

json scalar_of(const YAML::Node& node) {
  const auto& text = node.Scalar();
  if (node.Tag() == "!") return text; // it was quoted
  if (text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto x = whole<int64_t>(text)) return *x;
  bool digits = text.find_first_of("0123456789") != text.npos &&
                text.find_first_not_of("0123456789+-.eE") == text.npos;
  if (digits)
    if (auto x = whole<double>(text)) return *x;
  return text;
}

expected<json> value_of(const YAML::Node& node, yaml_walk& walk, int depth) {
  if (++walk.values > most_values)
    return bad_yaml(walk.place, node.Mark(), "it holds more than 100,000 values");
  if (depth > deepest_yaml) return bad_yaml(walk.place, node.Mark(), "it nests too deep");
  if (node.IsScalar()) return scalar_of(node);
  if (node.IsSequence()) {
    auto result = json::array();
    for (const auto& x : node) {
      auto value = value_of(x, walk, depth + 1);
      KM_TRY(value);
      result.push_back(std::move(*value));
    }
    return result;
  }
  if (!node.IsMap()) return json(nullptr);
  auto result = json::object();
  for (const auto& x : node) {
    if (!x.first.IsScalar()) return bad_yaml(walk.place, x.first.Mark(), "a key is no text");
    const auto& key = x.first.Scalar();
    if (result.contains(key))
      return bad_yaml(walk.place, x.first.Mark(), "the key " + key + " comes twice");
    auto value = value_of(x.second, walk, depth + 1);
    KM_TRY(value);
    result[key] = std::move(*value);
  }
  return result;
}

} // namespace

expected<json> json_of_yaml(const std::string& text, const std::string& place) {
  if (!is_utf8(text)) return bad_yaml(place, YAML::Mark::null_mark(), "it is not UTF-8");
  try {
    auto all = YAML::LoadAll(text);
    if (all.size() != 1)
      return bad_yaml(place, YAML::Mark::null_mark(), "it holds no document, or several");
    yaml_walk walk{place};
    return value_of(all.front(), walk, 0);
  } catch (const YAML::Exception& x) {
    return bad_yaml(place, x.mark, x.msg);
  }
}

} // namespace kernelmill
