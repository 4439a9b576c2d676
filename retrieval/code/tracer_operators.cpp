#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "retrieval/code/operator_table.hpp"
#include "retrieval/code/tracer.hpp"

namespace kernelmill {

namespace {

/// "bij,jk->bik" with letters in the order in which they come.
std::string einsum_form(std::string_view equation) {
  std::string result, seen;
  for (char c : equation) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == ' ') continue;
    if (!letter) {
      result += c;
      continue;
    }
    auto at = seen.find(c);
    if (at == seen.npos) {
      at = seen.size();
      seen += c;
    }
    result += static_cast<char>('a' + at);
  }
  return result;
}

/// Says whether the equation is a product of matrices: "abc,cd->abd", "abc,acd->abd".
bool is_product(std::string_view form) {
  auto comma = form.find(','), arrow = form.find("->");
  if (comma == form.npos || arrow == form.npos || comma > arrow || comma < 2) return false;
  auto left = form.substr(0, comma), right = form.substr(comma + 1, arrow - comma - 1);
  auto out = form.substr(arrow + 2);
  if (right.size() < 2) return false;
  auto batch = right.substr(0, right.size() - 2);
  return left.back() == right[right.size() - 2] && left.starts_with(batch) &&
         out == fmt::format("{}{}", left.substr(0, left.size() - 1), right.back());
}

bool is_zero(const python_value* x) {
  return x && x->is(python_type::number) && x->number == 0;
}

/// Says whether a call without a layer is a relu by another name: `x.clamp(min=0)`.
bool is_relu(std::string_view name, const call_arguments& x) {
  if (name == "threshold") return is_zero(x.find(1, "threshold")) && is_zero(x.find(2, "value"));
  const auto* most = x.find(2, "max");
  return name == "clamp" && is_zero(x.find(1, "min")) && (!most || most->is(python_type::none));
}

} // namespace

python_value number_value(double x) {
  python_value result;
  result.kind = python_type::number;
  result.number = x;
  return result;
}

python_value text_value(std::string x) {
  python_value result;
  result.kind = python_type::text;
  result.text = std::move(x);
  return result;
}

python_value external_value(std::string x) {
  python_value result;
  result.kind = python_type::external;
  result.text = std::move(x);
  return result;
}

const python_value& first_of(const call_arguments& x) {
  static const python_value none;
  return x.given.empty() ? none : x.given.front();
}

std::optional<bool> truth_of(const python_value& x) {
  switch (x.kind) {
    case python_type::none: return false;
    case python_type::number: return x.number != 0;
    case python_type::text: return !x.text.empty();
    case python_type::sequence: return x.of && !x.of->items.empty();
    case python_type::layer:
    case python_type::instance:
    case python_type::classes:
    case python_type::function: return true;
    default: return std::nullopt;
  }
}

std::string value_text(const python_value& x) {
  if (x.is(python_type::number)) return fmt::format("{:.6g}", x.number);
  if (x.is(python_type::text)) return x.text.substr(0, 40);
  if (x.is(python_type::none)) return "none";
  if (!x.is(python_type::sequence) || !x.of || x.of->items.size() > 16) return "?";
  std::vector<std::string> parts;
  for (const auto& item : x.of->items)
    parts.push_back(item.is(python_type::number) || item.is(python_type::text) ? value_text(item)
                                                                               : "?");
  bool same = !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                            [&](const auto& part) { return part == parts[0]; });
  return same ? parts[0] : fmt::format("{}", fmt::join(parts, "x"));
}

python_value tracer::new_tensor(int rank) {
  python_value result;
  result.kind = python_type::tensor;
  result.id = ++tensors_;
  result.rank = static_cast<int8_t>(std::clamp(rank, -1, 100));
  return result;
}

python_value tracer::sequence(std::vector<python_value> items) {
  pay(items.size()); // a list that doubles in a loop would fill the memory
  python_value result;
  result.kind = python_type::sequence;
  result.of = make_object();
  result.of->items = std::move(items);
  return result;
}

python_value tracer::emit_plain(std::string name, std::string parameters, const python_value& first,
                                int rank) {
  auto result = new_tensor(rank);
  if (!spend()) return result;
  produced x;
  x.shown.name = std::move(name);
  x.shown.parameters = std::move(parameters);
  x.input = first.id;
  x.output = result.id;
  x.of_made = first.made;
  result.producer = static_cast<int32_t>(operators_.size());
  operators_.push_back(std::move(x));
  return result;
}

/// `x * sigmoid(x)` is one operator, however it is written; null kind: it is none.
python_value tracer::fold_product(const python_value& a, const python_value& b) {
  for (const auto* x : {&a, &b}) {
    const auto& other = x == &a ? b : a;
    if (!is_last(*x)) continue;
    auto& last = operators_.back();
    if (last.shown.name == "sigmoid" && last.input == other.id)
      last.shown.name = "silu";
    else if (last.shown.name == "hardsigmoid" && last.input == other.id)
      last.shown.name = "hardswish";
    else if (last.shown.name == "tanh" && operators_.size() > 1 &&
             operators_[operators_.size() - 2].shown.name == "softplus" &&
             operators_[operators_.size() - 2].output == last.input &&
             operators_[operators_.size() - 2].input == other.id) {
      operators_.pop_back();
      operators_.back().shown.name = "mish";
    } else
      continue;
    auto result = new_tensor(std::max(a.rank, b.rank));
    result.producer = static_cast<int32_t>(operators_.size()) - 1;
    operators_.back().input = other.id;
    operators_.back().output = result.id;
    return result;
  }
  return {};
}

python_value tracer::elementwise(std::string_view name, const python_value& a,
                                 const python_value& b) {
  const auto& first = a.is(python_type::tensor) ? a : b;
  const auto& second = a.is(python_type::tensor) ? b : a;
  auto rank = std::max(a.rank, b.rank);
  if (!recording_) {
    auto result = new_tensor(rank);
    result.made = true;
    result.of = first.of; // `scale * torch.randn(...)` has the shape still
    return result;
  }
  if (name == "mul") {
    if (auto folded = fold_product(a, b); folded.is(python_type::tensor)) return folded;
    if (a.id == b.id && a.is(python_type::tensor)) return emit_plain("square", {}, a, rank);
  }
  if (name == "pow" && second.is(python_type::number)) {
    if (second.number == 2) return emit_plain("square", {}, first, rank);
    if (second.number == 0.5) return emit_plain("sqrt", {}, first, rank);
    return emit_plain("pow", "exponent=" + value_text(second), first, rank);
  }
  if (name == "matmul" && a.is(python_type::tensor) && is_last(b) &&
      operators_.back().shown.name == "transpose" && operators_.back().of_made) {
    auto result = new_tensor(rank);
    result.producer = b.producer;
    operators_.back() = {{"linear", "bias=0", {}}, a.id, result.id, false};
    return result;
  }
  if (name == "add" || name == "sub") {
    for (const auto* x : {&a, &b}) {
      const auto& other = x == &a ? b : a;
      if (name == "add" && is_last(*x) && other.made && operators_.back().shown.name == "linear" &&
          operators_.back().shown.parameters == "bias=0") {
        operators_.back().shown.parameters.clear();
        auto result = *x;
        result.id = operators_.back().output = ++tensors_;
        return result;
      }
    }
  }
  return emit_plain(std::string{name}, {}, first, rank);
}

/// Of a function that is given weights: what their layer or their shape says.
std::string tracer::weight_shape(const call_arguments& x, std::string_view parameter) const {
  const auto* weight = x.find(1, "weight");
  if (!weight || !weight->of) return "?";
  if (!weight->of->name.empty()) {
    if (auto named = weight->of->options.find("kernel_size"); named != weight->of->options.end())
      return value_text(named->second);
    return weight->of->arguments.size() > 2 ? value_text(weight->of->arguments[2]) : "?";
  }
  const auto& shape = weight->of->items;
  if (parameter != "kernel_size" || shape.size() < 3) return "?";
  python_object tail;
  tail.items.assign(shape.begin() + 2, shape.end());
  python_value value;
  value.kind = python_type::sequence;
  value.of = &tail;
  return value_text(value);
}

/// Of a convolution: "1", "depthwise" or "grouped".
std::string tracer::grouping(const call_arguments& x, const python_object* layer) const {
  call_arguments of_layer;
  if (layer) of_layer = {layer->arguments, layer->options};
  const auto& from = layer ? of_layer : x;
  const auto* groups = from.find(6, "groups");
  if (!groups) return "1";
  if (!groups->is(python_type::number)) return "depthwise"; // of a size of the input, as a rule
  if (groups->number == 1) return "1";
  if (layer) {
    const auto* channels = from.find(0, "in_channels");
    bool all = channels && channels->is(python_type::number) && channels->number == groups->number;
    return all ? "depthwise" : "grouped";
  }
  const auto* weight = x.find(1, "weight");
  if (!weight || !weight->of) return "depthwise";
  if (!weight->of->name.empty()) return grouping({}, weight->of);
  bool one = weight->of->items.size() > 1 && weight->of->items[1].is(python_type::number) &&
             weight->of->items[1].number == 1;
  return one ? "depthwise" : "grouped";
}

python_value tracer::emit(std::string_view called, const call_arguments& x,
                          const python_object* layer) {
  auto input = x.given.empty() ? python_value{} : x.given.front();
  if (auto named = x.named.find("input"); named != x.named.end()) input = named->second;
  if (input.is(python_type::sequence) && input.of && !input.of->items.empty())
    input = input.of->items.front();
  if (!recording_) {
    auto result = new_tensor(input.rank);
    result.made = true;
    result.of = input.of;
    return result;
  }
  const auto* row = find_operator(called);
  auto name = row ? std::string{row->name} : plain_operator_name(called);
  const auto* second = x.find(1, "other");
  bool two = second && second->is(python_type::tensor);
  if (!layer) {
    if (name == "addmm" || name == "baddbmm" || name == "addbmm") {
      if (x.given.size() < 3) return new_tensor(2);
      return elementwise("add", elementwise("matmul", x.given[1], x.given[2]), input);
    }
    bool binary_name = name == "add" || name == "sub" || name == "mul" || name == "div" ||
                       name == "matmul" || name == "pow" || name == "compare";
    if (binary_name) {
      const auto* exponent = x.find(1, "exponent");
      return elementwise(name, input, second ? *second : exponent ? *exponent : python_value{});
    }
    if (plain_operator_name(called) != "clampmax" && is_relu(name, x))
      return emit_plain("relu", {}, input, input.rank);
    if (two && (name == "max" || name == "min")) name += "imum"; // of two tensors
    if (name == "einsum" && x.given.size() > 1 && x.given[0].is(python_type::text)) {
      auto form = einsum_form(x.given[0].text);
      if (is_product(form)) return elementwise("matmul", x.given[1], x.given.back());
      return emit_plain("einsum", "equation=" + form, x.given[1], -1);
    }
  }
  const python_value no_value;
  std::string parameters, sizes;
  auto add = [&](std::string_view key, const std::string& value) {
    parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", key, value);
  };
  auto reduced = input.rank;
  if (row && (name.size() < 4 || name.substr(name.size() - 4) != "imum")) {
    const auto& known = layer ? row->module : row->function;
    call_arguments of_layer;
    if (layer) of_layer = {layer->arguments, layer->options};
    const auto& from = layer ? of_layer : x;
    size_t position = layer ? 0 : 1;
    std::string kernel_size;
    bool convolution = name.starts_with("conv");
    if (convolution && !layer) add("kernel_size", weight_shape(x, "kernel_size"));
    for (const auto& one : known) {
      const auto* value = from.find(position++, std::string{one.name});
      if (!value && one.name == "dim") {
        value = from.find(SIZE_MAX, "axis");
        if (!value) value = from.find(SIZE_MAX, "dims");
      }
      if (!one.counts) continue;
      auto text = value ? value_text(*value) : std::string{one.neutral};
      if (one.name == "groups" && convolution) text = grouping(x, layer);
      if (one.name == "kernel_size") kernel_size = text;
      if (one.name == "stride" && (text.empty() || text == "none" || text == kernel_size) &&
          !convolution)
        continue; // a pool's is its kernel's size
      if (one.name == "dim" && value && value->is(python_type::number) && value->number < 0 &&
          input.rank > 0)
        text = fmt::format("{:.6g}", value->number + input.rank);
      if (one.name == "dim" && name == "layer_norm") continue;
      if (one.name == "p" && text == "fro") text = "2";
      if (text == one.neutral || (one.neutral == "none" && text == "?")) continue;
      if (text.empty()) continue;
      add(one.name, text);
    }
    if (layer && name == "linear") {
      const auto* bias = of_layer.find(2, "bias");
      if (bias && truth_of(*bias) == false) add("bias", "0");
    } else if (name == "linear") {
      const auto* bias = x.find(2, "bias");
      if (!bias || bias->is(python_type::none)) add("bias", "0");
    }
    bool reduces =
        !known.empty() && known[0].name == "dim" && known.size() == 2 && known[1].name == "keepdim";
    if (reduces) {
      const auto* keep = from.find(layer ? 1 : 2, "keepdim");
      const auto* dim = from.find(layer ? 0 : 1, "dim");
      bool kept = keep && truth_of(*keep) == true;
      if (!kept && input.rank >= 0) {
        int gone = !dim ? input.rank
                   : dim->is(python_type::sequence) && dim->of
                       ? static_cast<int>(dim->of->items.size())
                       : 1;
        reduced = static_cast<int8_t>(std::max(0, input.rank - gone));
      }
    }
  }
  if (layer)
    for (const auto& argument : layer->arguments)
      if (auto text = value_text(argument); text != "?" && sizes.size() < 60) sizes += " " + text;
  if (name == "from_pretrained" || name == "frompretrained") {
    name = "pretrained";
    if (layer && !layer->arguments.empty()) parameters = "model=" + value_text(layer->arguments[0]);
  }
  if (name == "reshape" || name == "squeeze" || name == "index" || name == "stack") reduced = -1;
  if (name == "square" || name == "sqrt") parameters.clear();
  if (name == "copy") {
    auto same = input; // contiguous, float: the same tensor as far as its use goes
    emit_plain(name, {}, input, input.rank);
    same.producer = -1;
    return same;
  }
  auto result = emit_plain(std::move(name), std::move(parameters), input, reduced);
  if (result.producer >= 0) operators_.back().shown.sizes = std::move(sizes);
  return result;
}

} // namespace kernelmill
