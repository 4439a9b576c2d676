#include <algorithm>

#include "retrieval/code/tracer.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_rounds = 64; // of a loop whose count the text tells

bool begins_block(std::string_view word) {
  return word == "with" || word == "try" || word == "while" || word == "finally";
}

} // namespace

/// The first mark outside brackets that `wanted` takes, or `last`. Long scans cost steps, too.
template <class F>
uint32_t tracer::scan(uint32_t first, uint32_t last, F&& wanted) {
  auto i = first;
  for (; i < last; ++i) {
    const auto& token = text_.tokens[i];
    if (token.kind != python_kind::mark) continue;
    if (wanted(token.text)) break;
    if (token.match > i) i = token.match;
  }
  pay((std::min(i, last) - first) / 8);
  return std::min(i, last);
}

uint32_t tracer::find_mark(uint32_t first, uint32_t last, std::string_view mark) {
  return scan(first, last, [&](std::string_view x) { return x == mark; });
}

uint32_t tracer::find_assignment(uint32_t first, uint32_t last) {
  return scan(first, last, [](std::string_view x) {
    return x.ends_with('=') && x != "==" && x != "!=" && x != "<=" && x != ">=" && x != ":=";
  });
}

uint32_t tracer::end_of_element(uint32_t first, uint32_t last) {
  return find_mark(first, last, ",");
}

/// Runs the block of a statement, or what stands after its colon.
void tracer::run_suite(uint32_t at, uint32_t colon, python_scope& scope) {
  const auto& x = text_.statements[at];
  if (colon + 1 < x.last) run_simple(colon + 1, x.last, scope);
  run_block(at + 1, x.end, scope);
}

void tracer::run_block(uint32_t begin, uint32_t end, python_scope& scope) {
  deeper guard{depth_};
  if (depth_ > most_depth) return;
  for (auto at = begin; at < end && !scope.returned && spend();) run_statement(at, end, scope);
}

void tracer::run_statement(uint32_t& at, uint32_t end, python_scope& scope) {
  const auto& x = text_.statements[at];
  auto this_one = at;
  auto word = text_.tokens[x.first].kind == python_kind::name ? text_.tokens[x.first].text
                                                              : std::string_view{};
  if (word == "async" && x.first + 1 < x.last) word = text_.tokens[x.first + 1].text;
  if (word == "if") return run_if(at, end, scope);
  at = x.end;
  if (word == "class") {
    define_class(this_one, scope);
  } else if (word == "def") {
    define_function(this_one, scope);
  } else if (word == "for") {
    run_for(this_one, scope);
  } else if (begins_block(word)) {
    auto colon = find_mark(x.first, x.last, ":");
    if (colon > x.first + 1) evaluate(x.first + 1, colon, scope);
    run_suite(this_one, colon, scope);
  } else if (word != "except" && word != "else" && word != "elif") {
    run_simple(x.first, x.last, scope);
  }
}

void tracer::run_if(uint32_t& at, uint32_t end, python_scope& scope) {
  bool settled = false; // a branch that is known to be taken was
  for (bool first = true; at < end; first = false) {
    const auto& x = text_.statements[at];
    bool chained = is_word(x.first, x.last, "elif") || is_word(x.first, x.last, "else");
    if (!first && !chained) return;
    auto this_one = at;
    at = x.end;
    if (settled) continue;
    auto colon = find_mark(x.first, x.last, ":");
    std::optional<bool> holds = true;
    if (!is_word(x.first, x.last, "else")) holds = truth_of(evaluate(x.first + 1, colon, scope));
    if (holds == false) continue;
    run_suite(this_one, colon, scope);
    if (holds == true)
      settled = true;
    else
      scope.returned = false; // what follows may run as well
  }
}

std::vector<python_value> tracer::steps_of(const python_value& x) {
  if (x.of && (x.is(python_type::sequence) || x.is(python_type::layer))) {
    auto items = x.of->items;
    if (items.size() > most_rounds) items.resize(1);
    return items;
  }
  if (x.of && x.is(python_type::instance) && x.of->items.size() <= most_rounds) return x.of->items;
  if (x.is(python_type::dictionary) && x.of && x.of->fields.size() <= most_rounds) {
    std::vector<python_value> keys;
    for (const auto& [key, value] : x.of->fields) keys.push_back(text_value(key));
    return keys;
  }
  return {x.is(python_type::tensor) ? x : python_value{}};
}

void tracer::run_for(uint32_t at, python_scope& scope) {
  const auto& x = text_.statements[at];
  auto colon = find_mark(x.first, x.last, ":");
  auto word = x.first + 1;
  while (word < colon && !is_word(word, colon, "in")) ++word;
  auto over = evaluate(std::min(word + 1, colon), colon, scope);
  for (const auto& item : steps_of(over)) {
    if (scope.returned || !spend()) return;
    assign(x.first + 1, word, item, scope);
    run_suite(at, colon, scope);
  }
}

void tracer::define_class(uint32_t at, python_scope& scope) {
  const auto& x = text_.statements[at];
  if (x.first + 1 >= x.last) return;
  auto* made = make_object();
  made->name = text_.tokens[x.first + 1].text;
  made->at = at;
  auto open = x.first + 2;
  if (is_mark(open, x.last, "("))
    made->bases = arguments_of(open, std::min(text_.tokens[open].match, x.last), scope).given;
  auto& inner = scopes_.emplace_back();
  inner.outer = &scope;
  run_block(at + 1, x.end, inner);
  for (auto& [name, value] : inner.names) {
    if (value.is(python_type::function) && value.of) value.of->scope = &scope;
    made->fields[name] = value;
  }
  python_value value;
  value.kind = python_type::classes;
  value.of = made;
  scope.names[made->name] = value;
  if (&scope == globals_) classes_.push_back(made);
}

void tracer::define_function(uint32_t at, python_scope& scope) {
  const auto& x = text_.statements[at];
  auto name = x.first + (is_word(x.first, x.last, "async") ? 2 : 1);
  if (name >= x.last) return;
  python_value value;
  value.kind = python_type::function;
  value.of = make_object();
  value.of->name = text_.tokens[name].text;
  value.of->scope = &scope;
  value.of->at = at;
  scope.names[value.of->name] = value;
  if (&scope == globals_) functions_.push_back(value.of);
}

/// `import a.b as c`, `from a.b import c as d, e`.
void tracer::import_names(uint32_t first, uint32_t last, python_scope& scope) {
  auto at = first + 1;
  auto dotted = [&] {
    std::string name;
    while (at < last && (text_.tokens[at].kind == python_kind::name || is_mark(at, last, "."))) {
      if (is_word(at, last, "as") || is_word(at, last, "import")) break;
      name += text_.tokens[at++].text;
    }
    return name;
  };
  std::string package;
  if (is_word(first, last, "from")) {
    package = dotted();
    if (!is_word(at, last, "import")) return;
    ++at;
  }
  while (at < last && spend()) {
    if (text_.tokens[at].kind == python_kind::mark) {
      ++at;
      continue;
    }
    auto name = dotted();
    if (name.empty()) return;
    auto known_as = package.empty() ? name.substr(0, name.find('.')) : name;
    auto full = package.empty() ? known_as : package + "." + name;
    if (is_word(at, last, "as") && at + 1 < last) {
      known_as = text_.tokens[at + 1].text;
      full = package.empty() ? name : full;
      at += 2;
    }
    scope.names[known_as] = external_value(full);
  }
}

void tracer::run_simple(uint32_t first, uint32_t last, python_scope& scope) {
  if (first >= last || !spend()) return;
  if (is_word(first, last, "import") || is_word(first, last, "from"))
    return import_names(first, last, scope);
  if (is_word(first, last, "return")) {
    auto value = first + 1 < last ? evaluate(first + 1, last, scope) : python_value{};
    if (!value.is(python_type::none)) scope.result = value;
    scope.returned = true;
    return;
  }
  for (const char* word :
       {"raise", "assert", "del", "global", "nonlocal", "pass", "break", "continue"})
    if (is_word(first, last, word)) return;
  if (is_mark(first, last, "@")) return;
  auto equals = find_assignment(first, last);
  if (equals == last) {
    evaluate(first, last, scope);
    return;
  }
  if (auto mark = text_.tokens[equals].text; mark.size() > 1) { // `+=`
    auto before = evaluate(first, equals, scope);
    auto with = evaluate(equals + 1, last, scope);
    mark.remove_suffix(1);
    return assign(first, equals, binary(mark, before, with), scope);
  }
  auto value_at = equals + 1;
  for (auto next = find_mark(value_at, last, "="); next < last;
       next = find_mark(value_at, last, "="))
    value_at = next + 1;
  auto value = evaluate(value_at, last, scope);
  for (auto from = first; from < value_at;) {
    auto to = find_mark(from, value_at, "=");
    // `x: int = 3`
    assign(from, std::min(to, find_mark(from, to, ":")), value, scope);
    from = to + 1;
  }
}

/// To a name, a field, an element, or to several at once.
void tracer::assign(uint32_t first, uint32_t last, const python_value& x, python_scope& scope) {
  deeper guard{depth_};
  if (first >= last || depth_ > most_depth || !spend()) return;
  auto match = text_.tokens[first].match;
  bool bracketed = (is_mark(first, last, "(") || is_mark(first, last, "[")) && match == last - 1;
  if (bracketed) return assign(first + 1, last - 1, x, scope);
  if (is_mark(first, last, "*")) return assign(first + 1, last, x, scope);
  if (end_of_element(first, last) < last) {
    size_t i = 0;
    for (auto at = first; at < last; ++i) {
      auto to = end_of_element(at, last);
      python_value item;
      if (x.of && x.is(python_type::sequence))
        item = i < x.of->items.size() ? x.of->items[i] : item;
      else if (x.is(python_type::tensor))
        item = x;
      assign(at, to, item, scope);
      at = to + 1;
    }
    return;
  }
  if (first + 1 == last) {
    if (text_.tokens[first].kind == python_kind::name)
      scope.names[std::string{text_.tokens[first].text}] = x;
    return;
  }
  const auto& name = text_.tokens[last - 1];
  if (name.kind == python_kind::name && is_mark(last - 2, last, ".")) {
    auto owner = evaluate(first, last - 2, scope);
    if (owner.of && (owner.is(python_type::instance) || owner.is(python_type::classes)))
      owner.of->fields[std::string{name.text}] = x;
    return;
  }
  // `x[i] = y`: what stands before the last bracket changes.
  for (auto i = first + 1; i < last; ++i) {
    if (!is_mark(i, last, "[") || text_.tokens[i].match != last - 1) continue;
    auto owner = evaluate(first, i, scope);
    auto key = evaluate(i + 1, last - 1, scope);
    if (owner.of && owner.is(python_type::dictionary) && key.is(python_type::text))
      owner.of->fields[key.text] = x;
    return;
  }
}

} // namespace kernelmill
