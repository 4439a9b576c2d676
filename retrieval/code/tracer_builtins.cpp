#include <algorithm>
#include <array>
#include <cmath>

#include "retrieval/code/tracer.hpp"

namespace kernelmill {

/// What Python itself has: range, len, zip.
python_value tracer::call_builtin(const std::string& name, call_arguments& x, bool& known) {
  known = true;
  const auto& a = first_of(x);
  bool many = a.of && (a.is(python_type::sequence) || a.is(python_type::layer));
  if (name == "range") {
    std::array<double, 3> limits = {0, 0, 1};
    if (x.given.empty() || x.given.size() > 3) return {};
    for (const auto& one : x.given)
      if (!one.is(python_type::number)) return {};
    if (x.given.size() == 1)
      limits[1] = a.number;
    else
      for (size_t i = 0; i < x.given.size(); ++i) limits[i] = x.given[i].number;
    std::vector<python_value> items;
    if (limits[2] == 0) return {};
    for (double i = limits[0]; limits[2] > 0 ? i < limits[1] : i > limits[1]; i += limits[2]) {
      if (items.size() > 64) return {}; // as long as a size is
      items.push_back(number_value(i));
    }
    return sequence(std::move(items));
  }
  if (name == "len")
    return many ? number_value(static_cast<double>(a.of->items.size())) : python_value{};
  if (name == "int" || name == "float" || name == "round" || name == "bool") {
    if (!a.is(python_type::number)) return {};
    if (name == "int") return number_value(std::trunc(a.number));
    return name == "round" ? number_value(std::nearbyint(a.number)) : a;
  }
  if (name == "tuple" || name == "list" || name == "set" || name == "iter" || name == "next")
    return x.given.empty() ? sequence({}) : many ? sequence(a.of->items) : a;
  if (name == "reversed") return many ? sequence({a.of->items.rbegin(), a.of->items.rend()}) : a;
  if (name == "enumerate" || name == "zip") {
    std::vector<python_value> rows;
    auto count = many ? a.of->items.size() : 1;
    for (size_t i = 0; i < std::min<size_t>(count, 64); ++i) {
      std::vector<python_value> row;
      if (name == "enumerate") row.push_back(number_value(static_cast<double>(i)));
      for (const auto& one : x.given) {
        bool listed = one.of && (one.is(python_type::sequence) || one.is(python_type::layer));
        row.push_back(!listed ? one : i < one.of->items.size() ? one.of->items[i] : python_value{});
      }
      rows.push_back(sequence(std::move(row)));
    }
    return sequence(std::move(rows));
  }
  if (name == "dict" || name == "OrderedDict" || name == "collections.OrderedDict") {
    python_value result;
    result.kind = python_type::dictionary;
    result.of = make_object();
    result.of->fields = x.named;
    if (many)
      for (const auto& pair : a.of->items)
        if (pair.of && pair.of->items.size() == 2 && pair.of->items[0].is(python_type::text))
          result.of->fields[pair.of->items[0].text] = pair.of->items[1];
    return result;
  }
  bool numbers = !x.given.empty() &&
                 std::all_of(x.given.begin(), x.given.end(),
                             [](const python_value& v) { return v.is(python_type::number); });
  if ((name == "min" || name == "max") && numbers) {
    auto result = a.number;
    for (const auto& one : x.given)
      result = name == "min" ? std::min(result, one.number) : std::max(result, one.number);
    return number_value(result);
  }
  if (name == "abs" && numbers) return number_value(std::fabs(a.number));
  if (name == "getattr" && x.given.size() > 1 && x.given[1].is(python_type::text))
    return attribute(a, x.given[1].text);
  if (name == "isinstance") {
    if (x.given.size() < 2 || x.given[1].text != "int") return {};
    return a.is(python_type::unknown) ? python_value{} : number_value(a.is(python_type::number));
  }
  for (const char* silent :
       {"print", "hasattr", "callable", "type", "str", "setattr", "id", "sum", "repr", "format"})
    if (name == silent) return {};
  known = false;
  return {};
}

python_value tracer::subscript(const python_value& x, uint32_t open, uint32_t close,
                               python_scope& scope) {
  bool slice = find_mark(open + 1, close, ":") < close;
  if (x.is(python_type::tensor)) return recording_ ? emit_plain("index", {}, x, -1) : new_tensor();
  auto key = slice ? python_value{} : evaluate(open + 1, close, scope);
  if (!x.of) return x.is(python_type::external) ? x : python_value{};
  if (x.is(python_type::dictionary) ||
      ((x.is(python_type::layer) || x.is(python_type::instance)) && key.is(python_type::text))) {
    auto found = x.of->fields.find(key.text);
    return found == x.of->fields.end() ? python_value{} : found->second;
  }
  const auto& items = x.of->items;
  bool many =
      x.is(python_type::sequence) || x.is(python_type::layer) || x.is(python_type::instance);
  if (!many || items.empty()) return {};
  if (slice) {
    auto colon = find_mark(open + 1, close, ":");
    auto bound = [&](uint32_t from, uint32_t to, double otherwise) {
      auto at = from < to ? evaluate(from, to, scope) : number_value(otherwise);
      auto n = at.is(python_type::number) ? at.number : otherwise;
      if (n < 0) n += static_cast<double>(items.size());
      return std::clamp(n, 0.0, static_cast<double>(items.size()));
    };
    auto to = find_mark(colon + 1, close, ":");
    if (to < close) return sequence({items.rbegin(), items.rend()}); // a step: [::-1], as a rule
    auto begin = static_cast<ptrdiff_t>(bound(open + 1, colon, 0));
    auto end = static_cast<ptrdiff_t>(bound(colon + 1, close, static_cast<double>(items.size())));
    if (begin >= end) return sequence({});
    return sequence({items.begin() + begin, items.begin() + end});
  }
  if (!key.is(python_type::number)) return items.front();
  auto i = key.number < 0 ? key.number + static_cast<double>(items.size()) : key.number;
  return i >= 0 && i < static_cast<double>(items.size()) ? items[static_cast<size_t>(i)]
                                                         : python_value{};
}

python_value tracer::look_up(const std::string& name, const python_scope& scope) {
  for (auto* s = &scope; s; s = s->outer)
    if (auto found = s->names.find(name); found != s->names.end()) return found->second;
  if (name == "None") {
    python_value x;
    x.kind = python_type::none;
    return x;
  }
  if (name == "True" || name == "False") return number_value(name == "True" ? 1 : 0);
  if (name == "nn") return external_value("torch.nn");
  if (name == "F") return external_value("torch.nn.functional");
  return external_value(name);
}

const python_value* tracer::method_of(const python_object& of, const std::string& name) const {
  const auto* at = &of;
  for (int i = 0; at && i < 16; ++i) {
    if (auto found = at->fields.find(name); found != at->fields.end()) return &found->second;
    const python_object* above = nullptr;
    for (const auto& base : at->bases)
      if (base.is(python_type::classes)) above = base.of;
    at = above;
  }
  return nullptr;
}

python_value tracer::attribute(const python_value& x, const std::string& name) {
  auto method = [&] {
    python_value result;
    result.kind = python_type::method;
    result.text = name;
    result.of = make_object();
    result.of->self = x;
    return result;
  };
  switch (x.kind) {
    case python_type::external:
      if (x.text == "math" || x.text == "numpy" || x.text == "torch") {
        if (name == "pi") return number_value(3.14159265358979323846);
        if (name == "inf") return number_value(HUGE_VAL);
      }
      return external_value(x.text + "." + name);
    case python_type::instance:
      if (auto found = x.of->fields.find(name); found != x.of->fields.end()) return found->second;
      if (name == "training") return number_value(0);
      if (const auto* found = x.of->self.of ? method_of(*x.of->self.of, name) : nullptr)
        if (!found->is(python_type::function)) return *found;
      return method();
    case python_type::classes:
      if (const auto* found = method_of(*x.of, name)) return *found;
      return method();
    case python_type::tensor:
      if (name == "T" || name == "mT") {
        call_arguments given;
        given.given.push_back(x);
        return emit("transpose", given, nullptr);
      }
      if (name == "shape" || name == "dtype" || name == "device" || name == "ndim") return {};
      for (const char* part : {"data", "real", "values", "indices", "grad"})
        if (name == part) return x;
      return method();
    case python_type::layer:
      if (auto found = x.of->fields.find(name); found != x.of->fields.end()) return found->second;
      if (name == "weight" || name == "bias") {
        auto result = new_tensor();
        result.made = true;
        result.of = x.of; // whose it is tells the size of the kernel
        return result;
      }
      return method();
    case python_type::none:
    case python_type::number: return {};
    default: return method();
  }
}

} // namespace kernelmill
