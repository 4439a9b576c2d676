// One line of a workload.jsonl, or of a data set's traces.

#include <algorithm>
#include <cmath>

#include "launch/import/sol/definition.hpp"
#include "messages/base/json_depth.hpp"

namespace kernelmill::sol {

namespace {

using nlohmann::json;

constexpr size_t most_line = 1 << 20;
constexpr size_t most_text = 512;
constexpr int64_t largest_size = int64_t{1} << 40;

// Errors of a line, which all begin alike.
struct line_reader {
  std::string place;

  tl::unexpected<error> bad(const std::string& cause) const {
    return configuration_error(
        "bad_problem", "failed to read " + place + ": " + cause,
        "docs/how-to/use-sol-execbench.md describes the files that are read");
  }

  expected<std::string> text_of(const json& from, const std::string& where, const char* key) const {
    auto found = from.find(key);
    if (found == from.end() || !found->is_string())
      return bad(where + "." + key + " is missing, or no text");
    auto text = found->get<std::string>();
    if (text.empty() || text.size() > most_text)
      return bad(where + "." + key + " is empty or too long");
    return text;
  }

  expected<double> number_of(const json& from, const std::string& where, const char* key,
                             double fallback) const {
    auto found = from.find(key);
    if (found == from.end() || found->is_null()) return fallback;
    if (!found->is_number()) return bad(where + "." + key + " is no number");
    auto number = found->get<double>();
    if (!std::isfinite(number) || number < 0 || number > 1e12)
      return bad(where + "." + key + " is no number from 0 to 1e12");
    return number;
  }

  expected<tolerance> tolerance_of(const json& from, const std::string& where,
                                   double matched) const {
    tolerance x;
    for (auto [key, into, fallback] :
         {std::tuple{"max_atol", &x.absolute, 1e-2}, std::tuple{"max_rtol", &x.relative, 1e-2},
          std::tuple{"required_matched_ratio", &x.matched, matched}}) {
      auto value = number_of(from, where, key, fallback);
      KM_TRY(value);
      *into = *value;
    }
    if (x.matched <= 0 || x.matched > 1)
      return bad(where + ".required_matched_ratio is no share above 0");
    auto cap = number_of(from, where, "max_error_cap", -1);
    KM_TRY(cap);
    if (*cap >= 0) x.largest = *cap;
    return x;
  }

  // Newer files have a check for each output. We hold all outputs by one bound.
  expected<std::optional<tolerance>> bound_of_checks(const json& checks) const {
    if (!checks.is_array()) return bad("checks is no list");
    std::optional<tolerance> result;
    for (const auto& one : checks) {
      if (!one.is_object()) return bad("checks has what is no object");
      auto kind = text_of(one, "checks", "type");
      KM_TRY(kind);
      bool is_plain = !one.contains("mode") || one.at("mode") == "elementwise";
      if (*kind != "numeric" || !is_plain) return std::optional<tolerance>{};
      auto bound = tolerance_of(one, "checks", 1.0);
      KM_TRY(bound);
      if (result && !(*result == *bound)) return std::optional<tolerance>{};
      result = *bound;
    }
    return result;
  }

  expected<workload_input> input_of(const json& from, const std::string& where) const {
    if (!from.is_object()) return bad(where + " is no object");
    auto kind = text_of(from, where, "type");
    KM_TRY(kind);
    workload_input x;
    if (*kind == "random") return x;
    if (*kind == "custom") {
      x.kind = input_kind::custom;
      return x;
    }
    if (*kind == "scalar") {
      x.kind = input_kind::scalar;
      x.value = from.value("value", json{});
      if (!x.value.is_number() && !x.value.is_boolean())
        return bad(where + ".value is neither a number nor true or false");
      return x;
    }
    if (*kind == "generated") {
      x.kind = input_kind::generated;
      x.value = from.value("generator", json{});
      if (!x.value.is_object()) return bad(where + ".generator is no object");
      return x;
    }
    if (*kind != "safetensors") return bad(where + ".type is \"" + *kind + "\", which is unknown");
    x.kind = input_kind::file;
    for (auto [key, into] : {std::pair{"path", &x.path}, std::pair{"tensor_key", &x.key}}) {
      auto text = text_of(from, where, key);
      KM_TRY(text);
      *into = *text;
    }
    return x;
  }

  expected<void> read_inputs(const json& from, const definition& of, workload& into) const {
    for (const auto& [name, value] : from.items()) {
      auto known = std::any_of(of.inputs.begin(), of.inputs.end(),
                               [&, wanted = name](const auto& x) { return x.name == wanted; });
      if (!known) return bad("inputs." + name + " is no input of the definition");
      auto x = input_of(value, "inputs." + name);
      KM_TRY(x);
      if (x->kind == input_kind::custom && of.custom_inputs.empty())
        return bad("inputs." + name + " is custom, and the definition names no function for it");
      into.inputs[name] = std::move(*x);
    }
    for (const auto& x : of.inputs)
      if (!into.inputs.contains(x.name) && x.is_optional)
        into.inputs[x.name].kind = input_kind::none;
    return {};
  }
};

expected<void> read_axes(const line_reader& reader, const json& from, workload& into) {
  for (const auto& [name, value] : from.items()) {
    if (!value.is_number_integer() || value < 0 || value > largest_size)
      return reader.bad("axes." + name + " is no size from 0 to 2^40");
    into.axes[name] = value.get<int64_t>();
  }
  return {};
}

// The bound that the suite has where a workload names none.
tolerance usual(family suite, const definition& of) {
  tolerance x;
  if (suite == family::sol) return x;
  bool is_coarse = of.kind == "moe" || of.name.find("moe_fp8_block_scale") != of.name.npos;
  x.matched = is_coarse ? 0.95 : 1.0;
  return x;
}

} // namespace

expected<workload> read_workload(const std::string& line, const std::string& place, family suite,
                                 const definition& of) {
  line_reader reader{place};
  if (line.size() > most_line) return reader.bad("it is longer than 1 MiB");
  if (nests_deeper(line)) return reader.bad("it nests too deep");
  auto document = json::parse(line, nullptr, false);
  if (document.is_discarded()) return reader.bad("it is no JSON");
  if (!document.is_object()) return reader.bad("it is no object");
  if (auto named = document.find("definition"); named != document.end() && *named != of.name)
    return reader.bad("it is of another definition than " + of.name);
  if (document.contains("workload")) document = json(document.at("workload"));
  for (const char* key : {"axes", "inputs"})
    if (!document.is_object() || !document.contains(key) || !document.at(key).is_object())
      return reader.bad(std::string{key} + " is missing, or no object");
  workload x;
  x.place = place;
  auto name = reader.text_of(document, "workload", "uuid");
  KM_TRY(name);
  x.name = *name;
  KM_TRY(read_axes(reader, document.at("axes"), x));
  KM_TRY(reader.read_inputs(document.at("inputs"), of, x));
  if (document.contains("checks")) {
    auto bound = reader.bound_of_checks(document.at("checks"));
    KM_TRY(bound);
    x.bound = *bound;
    return x;
  }
  x.bound = usual(suite, of);
  auto own = document.find("tolerance");
  if (own == document.end() || own->is_null()) return x;
  if (!own->is_object()) return reader.bad("tolerance is no object");
  auto bound = reader.tolerance_of(*own, "tolerance", x.bound->matched);
  KM_TRY(bound);
  x.bound = *bound;
  return x;
}

} // namespace kernelmill::sol
