#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "retrieval/code/tracer.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_items = 4096;
constexpr size_t most_text_bytes = 256; // of a text: names of modes, equations of einsum

struct precedence {
  std::string_view mark;
  int level;
};

constexpr precedence levels[] = {
    {"or", 1}, {"and", 2}, {"in", 4}, {"is", 4}, {"not", 4}, {"<", 4},  {">", 4},  {"==", 4},
    {"!=", 4}, {"<=", 4},  {">=", 4}, {"|", 5},  {"^", 6},   {"&", 7},  {"<<", 8}, {">>", 8},
    {"+", 9},  {"-", 9},   {"*", 10}, {"/", 10}, {"//", 10}, {"%", 10}, {"@", 10}, {"**", 12}};
constexpr int unary_level = 11;

int level_of(std::string_view mark) {
  for (const auto& x : levels)
    if (x.mark == mark) return x.level;
  return 0;
}

std::string_view operator_of(std::string_view mark) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"+", "add"},           {"-", "sub"},         {"*", "mul"},        {"/", "div"},
      {"//", "floor_divide"}, {"%", "fmod"},        {"@", "matmul"},     {"**", "pow"},
      {"|", "bitwise_or"},    {"&", "bitwise_and"}, {"^", "bitwise_xor"}};
  for (const auto& [from, to] : names)
    if (from == mark) return to;
  return "compare";
}

std::optional<double> fold(std::string_view mark, double a, double b) {
  if (mark == "+") return a + b;
  if (mark == "-") return a - b;
  if (mark == "*") return a * b;
  if (mark == "/" && b != 0) return a / b;
  if (mark == "//" && b != 0) return std::floor(a / b);
  if (mark == "%" && b != 0) return a - b * std::floor(a / b);
  if (mark == "**") return std::pow(a, b);
  return std::nullopt;
}

} // namespace

python_value tracer::evaluate(uint32_t first, uint32_t last, python_scope& scope) {
  std::vector<python_value> items;
  bool tuple = false;
  for (auto at = first; at < last && spend();) {
    auto before = at;
    bool spread = is_mark(at, last, "*");
    if (spread) ++at;
    auto x = expression(at, last, scope);
    if (spread && x.of)
      items.insert(items.end(), x.of->items.begin(), x.of->items.end());
    else
      items.push_back(std::move(x));
    if (is_mark(at, last, ",")) {
      tuple = true;
      ++at;
    } else if (at == before) {
      ++at; // no expression begins so
    } else {
      break;
    }
  }
  if (items.size() == 1 && !tuple) return items.front();
  return items.empty() ? python_value{} : sequence(std::move(items));
}

python_value tracer::expression(uint32_t& at, uint32_t last, python_scope& scope) {
  deeper guard{depth_};
  if (depth_ > most_depth || !spend()) {
    at = last;
    return {};
  }
  if (is_word(at, last, "lambda")) return make_lambda(at, last, scope);
  if (is_word(at, last, "await") || is_word(at, last, "yield")) ++at;
  auto before = operators_.size();
  auto x = operation(at, last, 1, scope);
  if (is_mark(at, last, ":=")) return expression(++at, last, scope);
  if (!is_word(at, last, "if")) return x;
  auto chosen = operators_.size();
  auto holds = truth_of(operation(++at, last, 1, scope));
  if (is_word(at, last, "else")) ++at;
  auto decided = operators_.size();
  auto y = expression(at, last, scope);
  auto cut = [&](size_t from, size_t to) {
    to = std::min(to, operators_.size());
    if (from < to)
      operators_.erase(operators_.begin() + static_cast<ptrdiff_t>(from),
                       operators_.begin() + static_cast<ptrdiff_t>(to));
  };
  if (holds == true) {
    cut(decided, operators_.size());
    return x;
  }
  if (holds == false) {
    cut(before, chosen);
    if (y.is(python_type::tensor) && y.producer >= 0)
      y.producer -= static_cast<int32_t>(chosen - before);
    return y;
  }
  return x.is(python_type::tensor) || y.is(python_type::none) ? x : y;
}

python_value tracer::operation(uint32_t& at, uint32_t last, int least, python_scope& scope) {
  deeper guard{depth_};
  if (depth_ > most_depth) {
    at = last;
    return {};
  }
  python_value x;
  if (is_word(at, last, "not")) {
    auto holds = truth_of(operation(++at, last, 4, scope));
    x = holds ? number_value(*holds ? 0 : 1) : python_value{};
  } else if (is_mark(at, last, "-") || is_mark(at, last, "+") || is_mark(at, last, "~")) {
    auto mark = text_.tokens[at].text;
    x = operation(++at, last, unary_level, scope);
    if (x.is(python_type::number))
      x.number = mark == "-" ? -x.number : x.number;
    else if (x.is(python_type::tensor) && mark != "+")
      x = elementwise(mark == "-" ? "neg" : "logical_not", x, x);
  } else {
    x = operand(at, last, scope);
  }
  while (at < last && spend()) {
    auto mark = text_.tokens[at].text;
    auto level = text_.tokens[at].kind == python_kind::text ? 0 : level_of(mark);
    if (level == 0 || level < least) break;
    ++at;
    std::string_view negated = mark;
    if (mark == "not" && is_word(at, last, "in")) ++at;
    if (mark == "is" && is_word(at, last, "not")) {
      negated = "is not";
      ++at;
    }
    auto before = operators_.size();
    auto y = operation(at, last, mark == "**" ? level : level + 1, scope);
    if (mark == "and" || mark == "or") {
      auto holds = truth_of(x);
      if (!holds) {
        if (truth_of(y) == (mark == "or"))
          x = y; // that side settles it
        else if (!x.is(python_type::tensor))
          x = y.is(python_type::tensor) ? y : python_value{};
      } else if (*holds == (mark == "and")) {
        x = y;
      } else {
        operators_.resize(std::min(before, operators_.size()));
      }
    } else {
      x = level == 4 ? compare_values(negated, x, y) : binary(mark, x, y);
    }
  }
  return x;
}

python_value tracer::compare_values(std::string_view mark, const python_value& a,
                                    const python_value& b) {
  bool known = false, equal = false;
  if (mark == "is" || mark == "is not") {
    bool b_none = b.is(python_type::none);
    if (!b_none || a.is(python_type::unknown)) return {};
    known = true;
    equal = a.is(python_type::none);
  } else if (a.is(python_type::number) && b.is(python_type::number)) {
    if (mark == "<") return number_value(a.number < b.number);
    if (mark == ">") return number_value(a.number > b.number);
    if (mark == "<=") return number_value(a.number <= b.number);
    if (mark == ">=") return number_value(a.number >= b.number);
    known = mark == "==" || mark == "!=";
    equal = a.number == b.number;
  } else if (a.is(python_type::text) && b.is(python_type::text)) {
    known = mark == "==" || mark == "!=";
    equal = a.text == b.text;
  } else if (mark != "in" && mark != "not" &&
             (a.is(python_type::tensor) || b.is(python_type::tensor))) {
    return elementwise("compare", a, b);
  }
  if (!known) return {};
  return number_value(equal == (mark == "is" || mark == "=="));
}

python_value tracer::binary(std::string_view mark, const python_value& a, const python_value& b) {
  if (a.is(python_type::tensor) || b.is(python_type::tensor))
    return elementwise(operator_of(mark), a, b);
  if (a.is(python_type::number) && b.is(python_type::number)) {
    auto x = fold(mark, a.number, b.number);
    return x ? number_value(*x) : python_value{};
  }
  if (mark == "+" && a.is(python_type::text) && b.is(python_type::text) &&
      a.text.size() + b.text.size() < most_text_bytes)
    return text_value(a.text + b.text);
  auto many = [](const python_value& x) { return x.is(python_type::sequence) && x.of; };
  if (mark == "+" && many(a) && many(b) && a.of->items.size() + b.of->items.size() < most_items) {
    auto items = a.of->items;
    items.insert(items.end(), b.of->items.begin(), b.of->items.end());
    return sequence(std::move(items));
  }
  const auto& list = many(a) ? a : b;
  const auto& times = many(a) ? b : a;
  if (mark == "*" && many(list) && times.is(python_type::number)) {
    std::vector<python_value> items;
    for (double i = 0; i < times.number && items.size() < 64; ++i)
      items.insert(items.end(), list.of->items.begin(), list.of->items.end());
    return sequence(std::move(items));
  }
  return {};
}

python_value tracer::operand(uint32_t& at, uint32_t last, python_scope& scope) {
  auto x = atom(at, last, scope);
  while (at < last && spend()) {
    const auto& token = text_.tokens[at];
    auto close = std::min(token.match, last);
    if (is_mark(at, last, ".") && at + 1 < last) {
      x = attribute(x, std::string{text_.tokens[at + 1].text});
      at += 2;
    } else if (is_mark(at, last, "(")) {
      if (x.is(python_type::external) && x.text == "super") {
        x = {};
        x.kind = python_type::method; // of the class above, whatever its name
        x.text = "super";
        x.of = make_object();
        x.of->self = scope.self;
        for (auto* s = &scope; s; s = s->outer)
          if (s->owner) {
            x.of->bases = s->owner->bases;
            x.of->self = s->self;
            break;
          }
      } else {
        auto given = arguments_of(at, close, scope);
        x = call(x, given);
      }
      at = std::min(close + 1, last);
    } else if (is_mark(at, last, "[")) {
      x = subscript(x, at, close, scope);
      at = std::min(close + 1, last);
    } else {
      break;
    }
  }
  return x;
}

python_value tracer::atom(uint32_t& at, uint32_t last, python_scope& scope) {
  if (at >= last) return {};
  const auto& token = text_.tokens[at];
  auto here = at++;
  switch (token.kind) {
    case python_kind::number: {
      std::string digits;
      for (char c : token.text)
        if (c != '_') digits += c;
      return number_value(std::strtod(digits.c_str(), nullptr));
    }
    case python_kind::text: {
      std::string x{token.text};
      while (at < last && text_.tokens[at].kind == python_kind::text && x.size() < most_items)
        x += text_.tokens[at++].text;
      return text_value(std::move(x));
    }
    case python_kind::name: return look_up(std::string{token.text}, scope);
    case python_kind::mark: break;
  }
  if (token.text == "(" || token.text == "[" || token.text == "{") {
    auto close = std::min(token.match, last);
    at = std::min(close + 1, last);
    return bracket(here, close, scope);
  }
  if (token.text != "...") at = here; // the caller decides
  return {};
}

/// What is in brackets: a value, several, a comprehension or a dictionary.
python_value tracer::bracket(uint32_t at, uint32_t close, python_scope& scope) {
  auto first = at + 1;
  auto kind = text_.tokens[at].text;
  auto word = first;
  for (; word < close && !is_word(word, close, "for"); ++word)
    if (text_.tokens[word].kind == python_kind::mark)
      word = std::max(word, text_.tokens[word].match);
  pay((std::min(word, close) - first) / 8);
  if (word < close) return comprehension(first, word, close, scope);
  if (kind == "{") {
    python_value result;
    result.kind = python_type::dictionary;
    result.of = make_object();
    for (auto i = first; i < close && spend();) {
      auto end = end_of_element(i, close);
      auto colon = find_mark(i, end, ":");
      auto key = evaluate(i, colon, scope);
      if (colon < end && key.is(python_type::text))
        result.of->fields[key.text] = evaluate(colon + 1, end, scope);
      i = end + 1;
    }
    return result;
  }
  auto x = evaluate(first, close, scope);
  if (kind == "(") return first == close ? sequence({}) : x;
  // `[x]` has no comma, and `[(1, 2)]` none outside.
  if (first == close) return sequence({});
  if (is_mark(first, close, "*") && x.is(python_type::sequence)) return x;
  return end_of_element(first, close) < close ? x : sequence({x});
}

python_value tracer::comprehension(uint32_t first, uint32_t word, uint32_t last,
                                   python_scope& scope) {
  auto in = word + 1;
  while (in < last && !is_word(in, last, "in")) ++in;
  auto end = in + 1;
  for (; end < last && !is_word(end, last, "if") && !is_word(end, last, "for"); ++end)
    if (text_.tokens[end].kind == python_kind::mark) end = std::max(end, text_.tokens[end].match);
  end = std::min(end, last);
  auto over = in < last ? evaluate(in + 1, end, scope) : python_value{};
  std::vector<python_value> items;
  for (const auto& x : steps_of(over)) {
    if (!spend()) break;
    assign(word + 1, std::min(in, last), x, scope);
    auto colon = find_mark(first, word, ":");
    items.push_back(evaluate(colon < word ? colon + 1 : first, word, scope));
  }
  return sequence(std::move(items));
}

python_value tracer::make_lambda(uint32_t& at, uint32_t last, python_scope& scope) {
  auto first = at + 1;
  auto colon = find_mark(first, last, ":");
  auto end = end_of_element(std::min(colon + 1, last), last);
  at = end;
  python_value result;
  result.kind = python_type::function;
  result.of = make_object();
  result.of->lambda = true;
  result.of->at = first;
  result.of->end = end;
  result.of->scope = &scope;
  return result;
}

call_arguments tracer::arguments_of(uint32_t open, uint32_t close, python_scope& scope) {
  call_arguments result;
  for (auto at = open + 1; at < close && spend();) {
    auto end = end_of_element(at, close);
    auto equals = at + 1;
    if (is_mark(at, end, "**")) {
      if (auto x = evaluate(at + 1, end, scope); x.of && x.is(python_type::dictionary)) {
        pay(x.of->fields.size());
        for (const auto& [name, value] : x.of->fields) result.named[name] = value;
      }
    } else if (is_mark(at, end, "*")) {
      if (auto x = evaluate(at + 1, end, scope); x.of) {
        pay(x.of->items.size());
        result.given.insert(result.given.end(), x.of->items.begin(), x.of->items.end());
      }
    } else if (is_mark(equals, end, "=")) {
      result.named[std::string{text_.tokens[at].text}] = evaluate(equals + 1, end, scope);
    } else if (auto word = at; [&] {
                 for (; word < end && !is_word(word, end, "for"); ++word)
                   if (text_.tokens[word].kind == python_kind::mark)
                     word = std::max(word, text_.tokens[word].match);
                 return word < end;
               }()) {
      result.given.push_back(comprehension(at, word, end, scope));
    } else {
      result.given.push_back(evaluate(at, end, scope));
    }
    at = end + 1;
  }
  return result;
}

} // namespace kernelmill
