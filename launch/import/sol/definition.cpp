#include "launch/import/sol/definition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "messages/base/json_depth.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::sol {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t most_reference = 256 << 10;
constexpr size_t most_tensors = 64;
constexpr size_t most_axes = 64;
constexpr size_t most_dimensions = 8;
constexpr size_t most_name = 160;
constexpr int64_t most_size = int64_t{1} << 40;

constexpr const char* forms = "docs/how-to/use-sol-execbench.md describes the files that are read";

tl::unexpected<error> bad(const std::string& place, const std::string& cause) {
  return configuration_error("bad_problem", "failed to read " + place + ": " + cause, forms);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr std::array known_types{"float64",       "float32",     "float16",     "bfloat16",
                                 "float8_e4m3fn", "float8_e5m2", "float4_e2m1", "float4_e2m1fn_x2",
                                 "int64",         "int32",       "int16",       "int8",
                                 "uint8",         "bool"};

// What one part of a file holds, with the words for what is wrong there.
struct part {
  const ordered_json& value;
  std::string place;

  expected<std::string> text(const char* key, bool needed) const {
    auto found = value.find(key);
    if (found == value.end() || found->is_null()) {
      if (!needed) return std::string{};
      return bad(place, std::string{key} + " is missing");
    }
    if (!found->is_string()) return bad(place, std::string{key} + " is no text");
    return found->get<std::string>();
  }

  expected<const ordered_json*> object(const char* key) const {
    auto found = value.find(key);
    if (found == value.end()) return bad(place, std::string{key} + " is missing");
    if (!found->is_object()) return bad(place, std::string{key} + " is no object");
    return &*found;
  }
};

expected<ordered_json> parsed(const std::string& text, const std::string& place) {
  if (nests_deeper(text)) return bad(place, "it nests too deep");
  auto result = ordered_json::parse(text, nullptr, false);
  if (result.is_discarded()) return bad(place, "it is no JSON");
  if (!result.is_object()) return bad(place, "it is no object");
  return result;
}

expected<int64_t> size_at(const ordered_json& value, const std::string& place,
                          const std::string& key) {
  // Of integers that do not fit in 64 bits the library makes floating numbers.
  if (!value.is_number_integer() || value < 0 || value > most_size)
    return bad(place, key + " is no size from 0 to 2^40");
  return value.get<int64_t>();
}

expected<axis> read_axis(const std::string& name, const ordered_json& value,
                         const std::string& place) {
  auto where = "axes." + name;
  if (!is_free_name(name)) return bad(place, where + " is no name in Python");
  if (!value.is_object()) return bad(place, where + " is no object");
  part from{value, place};
  auto kind = from.text("type", true);
  KM_TRY(kind);
  auto description = from.text("description", false);
  KM_TRY(description);
  axis x;
  x.name = name;
  x.description = *description;
  if (*kind == "var") return x;
  if (*kind == "const") {
    x.kind = axis_kind::constant;
    auto size = size_at(value.value("value", ordered_json{}), place, where + ".value");
    KM_TRY(size);
    x.value = *size;
    return x;
  }
  if (*kind != "expr")
    return bad(place, where + ".type is \"" + *kind + "\", none of const, var and expr");
  x.kind = axis_kind::expression;
  auto expression = from.text("expression", true);
  KM_TRY(expression);
  x.expression = *expression;
  return x;
}

expected<tensor> read_tensor(const std::string& list, const std::string& name,
                             const ordered_json& value, const definition& of) {
  auto where = list + "." + name;
  if (!is_free_name(name)) return bad(of.place, where + " is no name in Python");
  if (!value.is_object()) return bad(of.place, where + " is no object");
  part from{value, of.place};
  tensor x;
  x.name = name;
  auto type = from.text("dtype", true);
  KM_TRY(type);
  x.type = *type;
  if (std::find(known_types.begin(), known_types.end(), x.type) == known_types.end())
    return bad(of.place, where + ".dtype is \"" + x.type + "\", which is no type that we know");
  auto description = from.text("description", false);
  KM_TRY(description);
  x.description = *description;
  if (auto optional = value.find("optional"); optional != value.end())
    x.is_optional = optional->is_boolean() && optional->get<bool>();
  auto shape = value.find("shape");
  if (shape == value.end()) return bad(of.place, where + ".shape is missing");
  x.is_scalar = shape->is_null();
  if (x.is_scalar) return x;
  if (!shape->is_array() || shape->size() > most_dimensions)
    return bad(of.place, where + ".shape is no list of up to 8 axes, and not null");
  for (const auto& one : *shape) {
    if (!one.is_string()) return bad(of.place, where + ".shape has what is no text");
    auto axis_name = one.get<std::string>();
    bool is_number = !axis_name.empty() && axis_name.size() < 12 &&
                     std::all_of(axis_name.begin(), axis_name.end(),
                                 [](char c) { return c >= '0' && c <= '9'; });
    bool is_known = std::any_of(of.axes.begin(), of.axes.end(),
                                [&](const auto& other) { return other.name == axis_name; });
    if (!is_number && !is_known)
      return bad(of.place, where + ".shape names the axis \"" + axis_name + "\", which is none");
    x.shape.push_back(axis_name);
  }
  return x;
}

// Whether a line of the module's level begins with `what`, as a whole word.
bool begins_a_line(std::string_view code, std::string_view what) {
  for (size_t at = code.find(what); at != code.npos; at = code.find(what, at + 1)) {
    auto behind = at + what.size();
    if ((at == 0 || code[at - 1] == '\n') && (behind == code.size() || !is_word(code[behind])))
      return true;
  }
  return false;
}

expected<void> check_reference(const definition& x) {
  if (x.reference.size() > most_reference) return bad(x.place, "reference is longer than 256 KiB");
  if (x.reference.find('\0') != x.reference.npos)
    return bad(x.place, "reference has a character zero");
  if (!begins_a_line(x.reference, "def run")) return bad(x.place, "reference defines no run");
  if (!x.custom_inputs.empty() &&
      (!is_free_name(x.custom_inputs) || !begins_a_line(x.reference, "def " + x.custom_inputs)))
    return bad(x.place, "custom_inputs_entrypoint is \"" + x.custom_inputs +
                            "\", which reference does not define");
  // The problem's own part stands behind it, and would take the place of such a name.
  for (const char* ours : {"class Model", "def Model", "Model", "def get_inputs",
                           "def get_init_inputs", "AXIS_", "VALUE_"})
    if (begins_a_line(x.reference, ours))
      return bad(x.place,
                 "reference defines a name that a problem has itself: " + std::string{ours});
  return {};
}

expected<void> read_tensors(const ordered_json& document, const char* list, definition& x,
                            std::vector<tensor>& into) {
  auto found = part{document, x.place}.object(list);
  KM_TRY(found);
  if ((*found)->size() > most_tensors)
    return bad(x.place, std::string{list} + " has more than 64 entries");
  for (const auto& [name, value] : (*found)->items()) {
    auto one = read_tensor(list, name, value, x);
    KM_TRY(one);
    for (const auto& other : x.inputs)
      if (other.name == name) return bad(x.place, std::string{list} + " names " + name + " twice");
    into.push_back(std::move(*one));
  }
  return {};
}

} // namespace

bool is_free_name(const std::string& x) {
  static const std::set<std::string> taken{
      "False",   "None",     "True",     "and",    "as",   "assert", "async",  "await",
      "break",   "class",    "continue", "def",    "del",  "elif",   "else",   "except",
      "finally", "for",      "from",     "global", "if",   "import", "in",     "is",
      "lambda",  "nonlocal", "not",      "or",     "pass", "raise",  "return", "try",
      "while",   "with",     "yield",    "self",   "run"};
  return !x.empty() && x.size() <= most_name && !(x[0] >= '0' && x[0] <= '9') &&
         std::all_of(x.begin(), x.end(), is_word) && !taken.contains(x);
}

expected<definition> read_definition(const std::string& text, const std::string& place,
                                     const std::string& beside) {
  auto document = parsed(text, place);
  KM_TRY(document);
  part from{*document, place};
  definition x;
  x.place = place;
  x.text = text;
  for (auto [key, needed, into] :
       {std::tuple{"name", true, &x.name}, std::tuple{"op_type", false, &x.kind},
        std::tuple{"description", false, &x.description},
        std::tuple{"reference", beside.empty(), &x.reference},
        std::tuple{"custom_inputs_entrypoint", false, &x.custom_inputs}}) {
    auto value = from.text(key, needed);
    KM_TRY(value);
    *into = *value;
  }
  if (x.reference.empty()) x.reference = beside;
  if (x.name.empty() || x.name.size() > most_name) return bad(place, "name is empty or too long");
  auto axes = from.object("axes");
  KM_TRY(axes);
  if ((*axes)->size() > most_axes) return bad(place, "axes has more than 64 entries");
  for (const auto& [name, value] : (*axes)->items()) {
    auto one = read_axis(name, value, place);
    KM_TRY(one);
    x.axes.push_back(std::move(*one));
  }
  KM_TRY(read_tensors(*document, "inputs", x, x.inputs));
  KM_TRY(read_tensors(*document, "outputs", x, x.outputs));
  if (x.outputs.empty()) return bad(place, "outputs is empty");
  KM_TRY(check_reference(x));
  return x;
}

expected<std::map<std::string, int64_t>> axes_at(const definition& x, const workload& at) {
  std::map<std::string, int64_t> result;
  for (const auto& one : x.axes) {
    if (one.kind == axis_kind::constant) result[one.name] = one.value;
    if (one.kind != axis_kind::variable) continue;
    auto found = at.axes.find(one.name);
    if (found == at.axes.end()) return bad(at.place, "axes." + one.name + " is missing");
    result[one.name] = found->second;
  }
  for (const auto& one : x.axes) {
    if (one.kind != axis_kind::expression) continue;
    auto value = evaluate(one.expression, result);
    if (!value)
      return bad(x.place, "axes." + one.name + ".expression \"" + one.expression +
                              "\": " + value.error().message);
    if (*value < 0 || *value > most_size)
      return bad(x.place, "axes." + one.name + " is " + std::to_string(*value) + " at " + at.place);
    result[one.name] = *value;
  }
  return result;
}

std::vector<int64_t> sizes_of(const tensor& x, const std::map<std::string, int64_t>& axes) {
  std::vector<int64_t> result;
  for (const auto& name : x.shape) {
    auto found = axes.find(name);
    result.push_back(found != axes.end() ? found->second : std::stoll(name));
  }
  return result;
}

} // namespace kernelmill::sol
