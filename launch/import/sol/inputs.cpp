#include "launch/import/sol/inputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "messages/base/text.hpp"

namespace kernelmill::sol {

namespace {

using nlohmann::json;
using axis_values = std::map<std::string, int64_t>;

bool is_integer(const std::string& type) {
  return type.find("int") != type.npos;
}

bool is_packed(const std::string& type) {
  return type.starts_with("float4");
}

bool is_fp8(const std::string& type) {
  return type.starts_with("float8");
}

workload_input input_at(const workload& at, const std::string& name) {
  auto found = at.inputs.find(name);
  return found == at.inputs.end() ? workload_input{} : found->second;
}

// A number as Python writes it, of the type that the input has.
json typed(const tensor& x, const json& value) {
  if (x.type == "bool") return value.is_boolean() ? value : json(value.get<double>() != 0);
  double number = value.is_boolean() ? value.get<bool>() : value.get<double>();
  if (is_integer(x.type) && number == std::floor(number) && std::fabs(number) < 9e15)
    return static_cast<int64_t>(number);
  return number;
}

json random_scalar(const tensor& x) {
  return typed(x, 1);
}

// -- names that tell what an input is -------------------------------------------------------------

bool ends_with_any(std::string_view name, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* x) { return name.ends_with(x); });
}

bool is_any(std::string_view name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* x) { return name == x; });
}

bool says(const tensor& x, std::initializer_list<const char*> words) {
  auto text = lowered(x.description);
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != text.npos; });
}

// "q_norm1_weight" of "weight": the part before the ending ends with norm, with or without digits.
bool is_of_norm(const std::string& name, const std::string& ending) {
  if (name == "norm" + ending) return true;
  if (!name.ends_with(ending)) return false;
  auto head = name.substr(0, name.size() - ending.size());
  if (head.ends_with("_norm") || head.ends_with("layernorm")) return true;
  auto plain = head.substr(0, head.find_last_not_of("0123456789") + 1);
  return plain != head && plain.ends_with("norm");
}

bool is_weight(const std::string& name) {
  auto plain = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return plain == "weight" ||
         ends_with_any(plain, {"_weight", "_weights", "_proj", "_projs", "_weight_matrix"});
}

bool is_positive(const std::string& name) {
  auto plain = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return is_any(plain, {"rstd", "std", "variance", "var"}) ||
         ends_with_any(plain, {"_rstd", "_std", "_variance", "_var"});
}

// -- lines of Python ------------------------------------------------------------------------------

struct writer {
  const definition& of;
  const workload& at;
  family suite;
  const axis_values& axes;

  std::string size_text(const std::string& axis_name) const {
    return axes.contains(axis_name) ? "AXIS_" + axis_name : std::to_string(std::stoll(axis_name));
  }

  std::string shape_text(const tensor& x) const {
    std::string result;
    for (const auto& one : x.shape) result += size_text(one) + ", ";
    if (x.shape.size() > 1) result.resize(result.size() - 2);
    if (x.shape.size() == 1) result.pop_back();
    return "(" + result + ")";
  }

  std::string typed_call(const std::string& function, const tensor& x) const {
    return "torch." + function + "(" + shape_text(x) + ", dtype=torch." + x.type + ")";
  }

  std::string random(const tensor& x) const {
    if (x.type == "bool") return "torch.randint(0, 2, " + shape_text(x) + ", dtype=torch.bool)";
    if (is_packed(x.type)) return "packed_fp4(torch.randn(" + shape_text(x) + "))";
    if (is_fp8(x.type))
      return "torch.randn(" + shape_text(x) + ").clamp_(-2.0, 2.0).to(torch." + x.type + ")";
    if (is_integer(x.type)) {
      const char* range = x.type == "int8"    ? "-128, 128"
                          : x.type == "uint8" ? "0, 256"
                                              : "-1024, 1024";
      return std::string{"torch.randint("} + range + ", " + shape_text(x) + ", dtype=torch." +
             x.type + ")";
    }
    return typed_call("randn", x);
  }

  // What SOL-ExecBench takes a tensor for by its name; empty: random numbers.
  std::string by_name(const tensor& x) const {
    if (is_integer(x.type) || is_packed(x.type) || is_fp8(x.type) || x.type == "bool") return {};
    auto sizes = sizes_of(x, axes);
    auto wide = "torch.randn(" + shape_text(x) + ")";
    auto narrowed = ".to(torch." + x.type + ")";
    auto uniform = [&](const char* low, const char* high) {
      return "torch.empty(" + shape_text(x) + ", dtype=torch." + x.type + ").uniform_(" + low +
             ", " + high + ")";
    };
    if (is_of_norm(x.name, "_weight")) return "1 + 0.1 * " + typed_call("randn", x);
    if (is_of_norm(x.name, "_bias")) return "0.1 * " + typed_call("randn", x);
    bool is_square = sizes.size() >= 2 && sizes[sizes.size() - 1] == sizes[sizes.size() - 2];
    if (is_square && (is_any(x.name, {"attention_mask", "causal_mask"}) ||
                      (says(x, {"attention mask"}) && says(x, {"causal"}))))
      return "causal_mask(" + shape_text(x) + ", torch." + x.type + ")";
    if (is_any(x.name,
               {"x_mask", "text_mask", "aspect_ratio_mask", "drop_mask", "attention_mask"}) ||
        (x.name.ends_with("_mask") &&
         says(x, {"binary", "{0, 1}", "0 or 1", "1.0 for valid", "0.0 for masked"})))
      return "torch.randint(0, 2, " + shape_text(x) + ")" + narrowed;
    if (is_any(x.name, {"cos", "cos_cached", "rope_cos"}))
      return "torch.cos(" + wide + ".clamp_(-math.pi, math.pi))" + narrowed;
    if (is_any(x.name, {"sin", "sin_cached", "rope_sin"}))
      return "torch.sin(" + wide + ".clamp_(-math.pi, math.pi))" + narrowed;
    if (is_positive(x.name)) return typed_call("randn", x) + ".abs() + 0.1";
    if (x.name == "A_cumsum") return uniform("-0.1", "0.0") + ".cumsum(dim=-1)";
    if (x.name == "A_log") return uniform("-5.0", "-1.0");
    if (x.name == "A") return uniform("-1.0", "-0.001");
    if (x.name == "g") return uniform("-5.0", "0.0");
    if (is_any(x.name, {"attn_weights", "attention_weights", "routing_weights"}) ||
        (says(x, {"softmax"}) && says(x, {"output"})))
      return "torch.softmax(" + wide + ", dim=-1)" + narrowed;
    if (x.shape.size() >= 2 && is_weight(x.name))
      return typed_call("randn", x) + " / " + size_text(x.shape.back()) + " ** 0.5";
    return {};
  }

  // Numbers of a generator, which stand in the problem's text: checked, and written by us.
  expected<std::string> generated(const tensor& x, const json& from) const {
    auto fail = [&](const std::string& cause) {
      return configuration_error("bad_problem", "failed to read " + at.place + ": inputs." +
                                                    x.name + ".generator " + cause);
    };
    auto number = [&](const char* key) -> std::optional<std::string> {
      auto found = from.find(key);
      if (found == from.end() || !found->is_number() || !std::isfinite(found->get<double>()))
        return std::nullopt;
      return json(found->get<double>()).dump();
    };
    auto bound = [&](const char* key) -> std::optional<std::string> {
      auto found = from.find(key);
      if (found == from.end()) return std::nullopt;
      if (found->is_number_integer()) return std::to_string(found->get<int64_t>());
      if (found->is_string() && axes.contains(found->get<std::string>()))
        return "AXIS_" + found->get<std::string>();
      return std::nullopt;
    };
    auto kind = from.value("type", json{});
    auto narrowed = ".to(torch." + x.type + ")";
    auto wide = "torch.randn(" + shape_text(x) + ")";
    if (kind == "normal" && number("mean") && number("std"))
      return "(" + wide + " * " + *number("std") + " + " + *number("mean") + ")" + narrowed;
    if (kind == "uniform" && number("low") && number("high"))
      return "torch.empty(" + shape_text(x) + ").uniform_(" + *number("low") + ", " +
             *number("high") + ")" + narrowed;
    if (kind == "constant" && number("value")) {
      if (is_integer(x.type) || x.type == "bool")
        return "torch.full(" + shape_text(x) + ", " + typed(x, from.at("value")).dump() + ")" +
               narrowed;
      return "(" + *number("value") + " + 0.1 * " + wide + ")" + narrowed;
    }
    if (kind == "integer" && bound("low") && bound("high"))
      return "torch.randint(" + *bound("low") + ", " + *bound("high") + ", " + shape_text(x) + ")" +
             narrowed;
    if (kind == "simplex" && bound("axis") && number("temperature"))
      return "torch.softmax(" + wide + " / " + *number("temperature") + ", dim=" + *bound("axis") +
             ")" + narrowed;
    return fail("is of a kind that is unknown, or lacks a number");
  }

  expected<std::string> line(const tensor& x) const {
    auto from = input_at(at, x.name);
    if (from.kind == input_kind::none) return std::string{"None"};
    if (from.kind == input_kind::custom) return "made[\"" + x.name + "\"]";
    if (from.kind == input_kind::scalar || x.is_scalar) return "VALUE_" + x.name;
    if (from.kind == input_kind::file)
      return "stored(FILE_" + x.name + ", torch." + x.type + ", " + shape_text(x) + ")";
    if (from.kind == input_kind::generated) return generated(x, from.value);
    auto named = suite == family::sol ? by_name(x) : std::string{};
    auto text = named.empty() ? random(x) : named;
    if (of.kind == "sampling" && x.name == "probs") return "torch.softmax(" + text + ", dim=-1)";
    return text;
  }
};

constexpr const char* packed_helper = R"(
def packed_fp4(x):
    """Numbers of four bits (e2m1), two in a byte: the first in the lower half."""
    sizes = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], device=x.device)
    code = torch.bucketize(x.abs(), sizes) + 8 * (x < 0)
    return (code[..., ::2] + 16 * code[..., 1::2]).to(torch.uint8)

)";

constexpr const char* causal_helper = R"(
def causal_mask(shape, dtype):
    return torch.full(shape, torch.finfo(dtype).min, dtype=dtype).triu_(diagonal=1)

)";

constexpr const char* stored_helper = R"(
@functools.lru_cache(maxsize=None)
def read_file(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "rb") as file:
        data = file.read()
    if not hashlib.sha256(data).hexdigest().startswith(name[:16]):
        raise ValueError(f"{name} is not the file that was imported")
    return data


def stored(place, dtype, shape):
    """A tensor of a file in this folder; place: "NAME:KEY"."""
    name, key = place.split(":", 1)
    data = read_file(name)
    size = int.from_bytes(data[:8], "little")
    first, end = json.loads(data[8 : 8 + size])[key]["data_offsets"]
    part = bytearray(data[8 + size + first : 8 + size + end])
    return torch.frombuffer(part, dtype=dtype).reshape(shape).to(torch.empty(0).device)

)";

// "head_dim // 2" with the constants' names. REQUIRES: evaluate() took it.
std::string formula_of(const std::string& expression) {
  std::string result;
  bool divides = false;
  for (size_t i = 0; i < expression.size();) {
    auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    size_t end = i;
    while (end < expression.size() && is_part(expression[end])) ++end;
    if (end == i) {
      divides = divides || expression[i] == '/';
      result += expression[i++];
      continue;
    }
    auto word = expression.substr(i, end - i);
    bool is_name = !(word[0] >= '0' && word[0] <= '9') && word[0] != '.';
    result += (is_name ? "AXIS_" : "") + word;
    i = end;
  }
  return divides ? "int(" + result + ")" : result;
}

} // namespace

std::vector<constant> constants_of(const definition& x, const workload& at) {
  std::vector<constant> result;
  for (const auto& one : x.axes) {
    if (one.kind == axis_kind::constant) result.push_back({"AXIS_" + one.name, one.value, {}});
    if (one.kind == axis_kind::variable)
      result.push_back({"AXIS_" + one.name, at.axes.at(one.name), {}});
  }
  for (const auto& one : x.axes)
    if (one.kind == axis_kind::expression)
      result.push_back({"AXIS_" + one.name, {}, formula_of(one.expression)});
  for (const auto& one : x.inputs) {
    auto from = input_at(at, one.name);
    if (from.kind == input_kind::scalar)
      result.push_back({"VALUE_" + one.name, typed(one, from.value), {}});
    else if (from.kind == input_kind::file)
      result.push_back({"FILE_" + one.name, from.path + ":" + from.key, {}});
    else if (one.is_scalar && from.kind == input_kind::random)
      result.push_back({"VALUE_" + one.name, random_scalar(one), {}});
  }
  return result;
}

std::string law_of(const definition& x, const workload& at) {
  std::string result;
  for (const auto& one : x.inputs) {
    auto from = input_at(at, one.name);
    result += std::to_string(static_cast<int>(from.kind)) +
              (from.kind == input_kind::generated ? from.value.dump() : "") + ",";
  }
  return result;
}

expected<std::string> drawing_code(const definition& x, const workload& at, family suite,
                                   const axis_values& axes) {
  writer write{x, at, suite, axes};
  std::string lines;
  for (const auto& one : x.inputs) {
    auto line = write.line(one);
    KM_TRY(line);
    lines += "        " + *line + ",\n";
  }
  auto uses = [&](const char* word) { return lines.find(word) != lines.npos; };
  std::string result;
  if (uses("packed_fp4(")) result += packed_helper;
  if (uses("causal_mask(")) result += causal_helper;
  if (uses("stored(")) result += stored_helper;
  result += "\ndef get_inputs():\n";
  if (uses("made[")) {
    std::string known;
    for (const auto& one : x.axes) known += "\"" + one.name + "\": AXIS_" + one.name + ", ";
    for (const auto& one : x.inputs)
      if (input_at(at, one.name).kind == input_kind::scalar)
        known += "\"" + one.name + "\": VALUE_" + one.name + ", ";
    if (!known.empty()) known.resize(known.size() - 2);
    result += "    made = " + x.custom_inputs + "({" + known + "}, torch.empty(0).device)\n";
  }
  return result + "    return [\n" + lines + "    ]\n";
}

} // namespace kernelmill::sol
