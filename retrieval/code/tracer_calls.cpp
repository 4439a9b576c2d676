#include <algorithm>
#include <cmath>

#include "retrieval/code/operator_table.hpp"
#include "retrieval/code/tracer.hpp"

namespace kernelmill {

namespace {

constexpr int most_calls_deep = 100;

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool is_layer_name(const std::string& name) {
  auto last = last_part(name);
  return !last.empty() && last[0] >= 'A' && last[0] <= 'Z' && name.starts_with("torch.nn.");
}

bool has_tensor(const call_arguments& x) {
  auto is_tensor = [](const python_value& v) {
    return v.is(python_type::tensor) ||
           (v.is(python_type::sequence) && v.of && !v.of->items.empty() &&
            v.of->items.front().is(python_type::tensor));
  };
  return std::any_of(x.given.begin(), x.given.end(), is_tensor) ||
         std::any_of(x.named.begin(), x.named.end(),
                     [&](const auto& one) { return is_tensor(one.second); });
}

} // namespace

/// Gives parameters their arguments, their defaults, or what is not known.
void tracer::bind(python_object& f, call_arguments& x, const python_value* self,
                  python_scope& scope) {
  uint32_t first = f.at, last = f.end;
  if (!f.lambda) {
    const auto& header = text_.statements[f.at];
    auto open = header.first;
    while (open < header.last && !is_mark(open, header.last, "(")) ++open;
    if (open >= header.last) return;
    first = open + 1;
    last = std::min(text_.tokens[open].match, header.last);
  } else {
    last = find_mark(first, last, ":");
  }
  size_t position = 0;
  bool only_named = false;
  if (self) x.given.insert(x.given.begin(), *self);
  for (auto at = first; at < last && spend();) {
    auto end = end_of_element(at, last);
    auto equals = find_mark(at, end, "=");
    if (is_mark(at, end, "**")) {
      python_value rest;
      rest.kind = python_type::dictionary;
      rest.of = make_object();
      rest.of->fields = x.named;
      if (at + 1 < end) scope.names[std::string{text_.tokens[at + 1].text}] = rest;
    } else if (is_mark(at, end, "*")) {
      only_named = true;
      std::vector<python_value> rest;
      for (; position < x.given.size(); ++position) rest.push_back(x.given[position]);
      if (at + 1 < end) scope.names[std::string{text_.tokens[at + 1].text}] = sequence(rest);
    } else if (at < end) {
      std::string name{text_.tokens[at].text};
      python_value value;
      if (auto found = x.named.find(name); found != x.named.end()) {
        value = found->second;
        x.named.erase(found);
      } else if (!only_named && position < x.given.size()) {
        value = x.given[position++];
      } else if (equals < end) {
        value = evaluate(equals + 1, end, scope);
      }
      scope.names[name] = value;
    }
    at = end + 1;
  }
}

python_value tracer::call_function(python_object& f, call_arguments& x, const python_value* self) {
  deeper guard{depth_};
  if (depth_ > most_calls_deep || !spend()) return new_tensor();
  auto& scope = scopes_.emplace_back();
  scope.outer = f.scope ? f.scope : globals_;
  if (self) scope.self = *self;
  bind(f, x, self, scope);
  if (f.lambda) {
    auto colon = find_mark(f.at, f.end, ":");
    return evaluate(std::min(colon + 1, f.end), f.end, scope);
  }
  if (self && self->of) scope.owner = self->of->self.of;
  if (!f.bases.empty()) scope.owner = f.bases.front().of;
  const auto& header = text_.statements[f.at];
  run_suite(f.at, find_mark(header.first, header.last, ":"), scope);
  return scope.result;
}

python_value tracer::make_instance(python_object& of, call_arguments& x) {
  python_value made;
  made.kind = python_type::instance;
  made.of = make_object();
  made.of->self.kind = python_type::classes;
  made.of->self.of = &of;
  bool before = recording_;
  recording_ = false;
  if (const auto* init = method_of(of, "__init__"); init && init->of)
    call_function(*init->of, x, &made);
  recording_ = before;
  return made;
}

python_value tracer::make_tensor(const call_arguments& x) {
  auto result = new_tensor();
  result.made = true;
  auto shape = x.given;
  if (auto size = x.named.find("size"); size != x.named.end()) shape = {size->second};
  if (shape.size() == 1 && shape[0].is(python_type::sequence) && shape[0].of)
    shape = shape[0].of->items;
  result.rank = static_cast<int8_t>(std::min<size_t>(shape.size(), 100));
  result.of = make_object();
  result.of->items = std::move(shape);
  return result;
}

python_value tracer::call(const python_value& callee, call_arguments& x) {
  deeper guard{depth_};
  if (depth_ > most_depth || !spend()) return new_tensor();
  switch (callee.kind) {
    case python_type::classes: return make_instance(*callee.of, x);
    case python_type::function: return call_function(*callee.of, x, nullptr);
    case python_type::layer: return call_layer(*callee.of, x);
    case python_type::external: return call_external(callee.text, x);
    case python_type::method: return call_method(callee, x);
    case python_type::instance: {
      for (const char* name : {"forward", "__call__"})
        if (const auto* found = method_of(*callee.of->self.of, name); found && found->of)
          return call_function(*found->of, x, &callee);
      // A class may be a Sequential with other arguments.
      if (auto base = callee.of->fields.find("super"); base != callee.of->fields.end())
        return call(base->second, x);
      return first_of(x);
    }
    default:
      if (!has_tensor(x)) return {};
      if (recording_) strange_ = true;
      return new_tensor();
  }
}

python_value tracer::call_layer(python_object& layer, call_arguments& x) {
  if (layer.name == "Sequential") {
    auto value = first_of(x);
    for (const auto& child : layer.items) {
      call_arguments next;
      next.given.push_back(value);
      value = call(child, next);
    }
    return value;
  }
  if (layer.name == "TransformerEncoder" || layer.name == "TransformerDecoder") {
    auto value = first_of(x);
    auto rounds = layer.arguments.size() > 1 ? layer.arguments[1] : python_value{};
    if (auto named = layer.options.find("num_layers"); named != layer.options.end())
      rounds = named->second;
    auto count = rounds.is(python_type::number) ? std::clamp(rounds.number, 1.0, 64.0) : 1.0;
    for (double i = 0; i < count && !layer.arguments.empty(); ++i) {
      call_arguments next;
      next.given.push_back(value);
      value = call(layer.arguments.front(), next);
    }
    return value;
  }
  if (layer.name == "Identity") return first_of(x);
  return emit(layer.name, x, &layer);
}

python_value tracer::call_external(const std::string& name, call_arguments& x) {
  bool known = false;
  if (auto result = call_builtin(name, x, known); known) return result;
  auto last = last_part(name);
  if (last == "Parameter" || last == "Buffer" || last == "Variable") {
    auto result = x.given.empty() ? new_tensor() : x.given.front();
    result.kind = python_type::tensor;
    result.made = true;
    return result;
  }
  if (is_layer_name(name) || last == "from_pretrained") {
    python_value made;
    made.kind = python_type::layer;
    made.of = make_object();
    made.of->name = last;
    made.of->arguments = x.given;
    made.of->options = x.named;
    bool holds = last == "Sequential" || last == "ModuleList" || last == "ModuleDict" ||
                 last == "ParameterList";
    if (holds) {
      for (const auto& item : x.given) {
        if (item.is(python_type::dictionary) && item.of)
          for (const auto& [key, value] : item.of->fields) {
            made.of->fields[key] = value;
            if (last != "ModuleDict") made.of->items.push_back(value);
          }
        else if (item.is(python_type::sequence) && item.of)
          made.of->items.insert(made.of->items.end(), item.of->items.begin(), item.of->items.end());
        else
          made.of->items.push_back(item);
      }
    }
    return made;
  }
  bool torch = name.starts_with("torch.");
  if (torch && (name.find(".init.") != name.npos || last == "no_grad" || last == "manual_seed"))
    return first_of(x);
  if (torch && makes_tensor(last)) return make_tensor(x);
  if (name.starts_with("math.") || name.starts_with("numpy.")) {
    const auto& a = first_of(x);
    if (!has_tensor(x) && a.is(python_type::number)) {
      if (last == "sqrt") return number_value(std::sqrt(a.number));
      if (last == "log") return number_value(std::log(a.number));
      if (last == "log2") return number_value(std::log2(a.number));
      if (last == "floor") return number_value(std::floor(a.number));
      if (last == "ceil") return number_value(std::ceil(a.number));
      if (last == "exp") return number_value(std::exp(a.number));
    }
    return {};
  }
  if (!has_tensor(x)) return {};
  if (!recording_) return new_tensor();
  // `einops.rearrange` is an operator, and so is a function of torch that is no row of the table.
  if (!torch && !name.starts_with("einops.") && !find_operator(last)) {
    strange_ = true;
    return new_tensor();
  }
  return emit(last, x, nullptr);
}

python_value tracer::call_method(const python_value& method, call_arguments& x) {
  const auto& name = method.text;
  if (name == "super") return method;
  auto& self = method.of->self;
  if (self.is(python_type::method) && self.text == "super") {
    // Of super(): the method of a class above with the same instance.
    auto instance = self.of->self;
    for (const auto& base : self.of->bases) {
      if (base.is(python_type::classes) && base.of)
        if (const auto* found = method_of(*base.of, name); found && found->of) {
          python_object above = *found->of; // whose super() is one class further up
          above.bases = {base};
          return call_function(objects_.emplace_back(std::move(above)), x, &instance);
        }
      if (base.is(python_type::external) && is_layer_name(base.text) && instance.of) {
        if (name == "__init__" && !base.text.ends_with(".Module")) {
          auto layer = call_external(base.text, x);
          instance.of->fields["super"] = layer;
          if (layer.of) instance.of->items = layer.of->items;
        } else if (name == "forward" && instance.of->fields.contains("super")) {
          return call(instance.of->fields["super"], x);
        }
      }
    }
    return {};
  }
  if (self.is(python_type::classes) && self.of) {
    // `Rounding.apply(x)`: a function with its own backward.
    if (name == "apply")
      if (const auto* forward = method_of(*self.of, "forward"); forward && forward->of) {
        x.given.insert(x.given.begin(), python_value{});
        return call_function(*forward->of, x, nullptr);
      }
    return has_tensor(x) ? new_tensor() : python_value{};
  }
  if (self.is(python_type::instance)) {
    if (const auto* found = self.of->self.of ? method_of(*self.of->self.of, name) : nullptr;
        found && found->of)
      return call_function(*found->of, x, &self);
    bool registers = name == "register_buffer" || name == "register_parameter" ||
                     name == "add_module" || name == "register_module";
    if (registers && x.given.size() > 1 && x.given[0].is(python_type::text)) {
      self.of->fields[x.given[0].text] = x.given[1];
      if (name == "add_module") {
        self.of->items.push_back(x.given[1]);
        if (auto base = self.of->fields.find("super");
            base != self.of->fields.end() && base->second.of)
          base->second.of->items.push_back(x.given[1]);
      }
    }
    if (name == "children" || name == "modules") return sequence(self.of->items);
    return has_tensor(x) ? new_tensor() : python_value{};
  }
  if (self.is(python_type::sequence) || self.is(python_type::layer)) {
    auto& items = self.of->items;
    bool room = items.size() < 4096 && !x.given.empty();
    if (name == "extend" && room && x.given[0].of) pay(x.given[0].of->items.size());
    if (name == "append" && room)
      items.push_back(x.given.front());
    else if (name == "insert" && room && x.given.size() > 1)
      items.push_back(x.given[1]);
    else if (name == "extend" && room && x.given[0].of && x.given[0].of != self.of)
      items.insert(items.end(), x.given[0].of->items.begin(), x.given[0].of->items.end());
    else if (name == "add_module" && room && x.given.size() > 1)
      items.push_back(x.given[1]);
    else if (name == "pop" && !items.empty()) {
      auto last = items.back();
      items.pop_back();
      return last;
    } else if (name == "forward")
      return call_layer(*self.of, x);
    else if (self.is(python_type::layer) && name != "children" && name != "append")
      return self;
    return self;
  }
  if (self.is(python_type::dictionary) && self.of) {
    std::vector<python_value> result;
    for (const auto& [key, value] : self.of->fields) {
      if (name == "values")
        result.push_back(value);
      else if (name == "keys")
        result.push_back(text_value(key));
      else if (name == "items")
        result.push_back(sequence({text_value(key), value}));
      else if (name == "get" && first_of(x).text == key)
        return value;
    }
    return name == "get" ? (x.given.size() > 1 ? x.given[1] : look_up("None", *globals_))
                         : sequence(std::move(result));
  }
  if (self.is(python_type::tensor)) {
    for (const char* asks : {"size", "dim", "numel", "item", "tolist", "stride", "is_contiguous",
                             "get_device", "ndimension", "numpy", "backward"})
      if (name == asks) return {};
    x.given.insert(x.given.begin(), self);
    if (name.starts_with("new_")) return new_tensor();
    return recording_ ? emit(name, x, nullptr) : self;
  }
  if (!has_tensor(x)) return {};
  if (recording_) strange_ = true; // of a thing that the text does not make
  return new_tensor();
}

} // namespace kernelmill
