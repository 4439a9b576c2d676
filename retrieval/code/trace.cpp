#include "retrieval/code/trace.hpp"

#include <algorithm>

#include "retrieval/code/operator_table.hpp"
#include "retrieval/code/tracer.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_code_bytes = 256 << 10;

} // namespace

/// Says whether another class or a function names the class: then it is a part.
bool tracer::is_named_elsewhere(const python_object& x) const {
  const auto& own = text_.statements[x.at];
  auto end = own.end < text_.statements.size() ? text_.statements[own.end].first
                                               : static_cast<uint32_t>(text_.tokens.size());
  for (const auto& s : text_.statements) {
    bool other_class = s.indent == own.indent && is_word(s.first, s.last, "class");
    if (s.indent <= own.indent && !other_class) continue; // where a file tries itself
    for (auto at = s.first; at < s.last; ++at)
      if ((at < own.first || at >= end) && is_word(at, s.last, x.name)) return true;
  }
  return false;
}

/// "Model", or "ModelNew" where a kernel took its place, or the last class that has a forward and
/// is no part of another.
python_object* tracer::entry_class() {
  for (const char* wanted : {"Model", "ModelNew"})
    for (auto* x : classes_)
      if (x->name == wanted && method_of(*x, "forward")) return x;
  python_object *last = nullptr, *whole = nullptr;
  for (auto* x : classes_) {
    bool layer = std::any_of(x->bases.begin(), x->bases.end(), [](const python_value& base) {
      return !base.text.ends_with("Function");
    });
    if (!layer || !method_of(*x, "forward")) continue;
    last = x;
    // Each look costs a walk over the text.
    pay(text_.tokens.size() / 8);
    if (steps_ > 0 && !is_named_elsewhere(*x)) whole = x;
  }
  return whole ? whole : last;
}

/// The last function, but for those that make inputs: what it calls stands before it.
python_object* tracer::entry_function() {
  python_object* last = nullptr;
  for (auto* x : functions_) {
    bool helps = x->name.starts_with("get_") || x->name == "main" || x->name.starts_with("test");
    if (!helps) last = x;
  }
  return last;
}

/// What a function without parameters returns, as a list.
std::vector<python_value> tracer::values_of(const char* function) {
  auto found = globals_->names.find(function);
  if (found == globals_->names.end() || !found->second.is(python_type::function)) return {};
  call_arguments none;
  auto x = call_function(*found->second.of, none, nullptr);
  return x.of && x.is(python_type::sequence) ? x.of->items : std::vector<python_value>{};
}

void tracer::trace_class(python_object& of) {
  call_arguments made;
  made.given = values_of("get_init_inputs");
  // KernelBook's form: positional arguments, and the named ones.
  if (made.given.size() == 2 && made.given[0].is(python_type::sequence) && made.given[0].of &&
      made.given[1].is(python_type::dictionary) && made.given[1].of) {
    auto named = made.given[1].of->fields;
    auto given = made.given[0].of->items;
    made = {given, named};
  }
  auto instance = make_instance(of, made);
  const auto* forward = method_of(of, "forward");
  call_arguments inputs;
  inputs.given = values_of("get_inputs");
  for (auto& x : inputs.given)
    if (x.is(python_type::tensor)) x.made = true;
  if (!forward || !forward->of) return;
  // Inputs that the text does not name are tensors, too.
  const auto& header = text_.statements[forward->of->at];
  auto open = header.first;
  while (open < header.last && !is_mark(open, header.last, "(")) ++open;
  auto close = open < header.last ? std::min(text_.tokens[open].match, header.last) : open;
  size_t wanted = 0;
  for (auto at = open + 1; at < close; at = end_of_element(at, close) + 1) {
    auto end = end_of_element(at, close);
    if (find_mark(at, end, "=") == end && !is_mark(at, end, "*")) ++wanted;
  }
  while (inputs.given.size() + 1 < wanted && inputs.given.size() < 64) {
    inputs.given.push_back(new_tensor());
    inputs.given.back().made = true;
  }
  recording_ = true;
  call_function(*forward->of, inputs, &instance);
}

program_trace tracer::trace() {
  globals_ = &scopes_.emplace_back();
  run_block(0, static_cast<uint32_t>(text_.statements.size()), *globals_);
  globals_->returned = false;
  auto inputs = values_of("get_inputs");
  if (auto* model = entry_class()) {
    trace_class(*model);
  } else if (auto* function = entry_function()) {
    call_arguments given;
    const auto& header = text_.statements[function->at];
    auto open = header.first;
    while (open < header.last && !is_mark(open, header.last, "(")) ++open;
    auto close = open < header.last ? std::min(text_.tokens[open].match, header.last) : open;
    for (auto at = open + 1; at < close && given.given.size() < 64;
         at = end_of_element(at, close) + 1) {
      auto end = end_of_element(at, close);
      if (find_mark(at, end, "=") < end || is_mark(at, end, "*")) break;
      auto i = given.given.size();
      given.given.push_back(i < inputs.size() ? inputs[i] : new_tensor());
      given.given.back().made = true;
    }
    recording_ = true;
    call_function(*function, given, nullptr);
  }
  program_trace result;
  for (auto& x : operators_) result.operators.push_back(std::move(x.shown));
  for (const auto& x : inputs) {
    if (!x.is(python_type::tensor) || !x.of || x.of->items.empty()) continue;
    std::string shape;
    for (const auto& size : x.of->items)
      if (shape.size() < 60) shape += (shape.empty() ? "" : "x") + value_text(size);
    result.inputs.push_back({std::move(shape)});
  }
  result.strange = strange_;
  return result;
}

program_trace trace_program(std::string_view code) {
  return tracer{code.substr(0, most_code_bytes)}.trace();
}

} // namespace kernelmill
