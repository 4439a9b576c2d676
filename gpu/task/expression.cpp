// Expressions compile to postfix: code_ holds pairs {operation, operand}, and the operand counts
// only for the two pushes. Parsing is recursive descent with a depth limit, because the text
// comes from a file.

#include <algorithm>
#include <charconv>

#include "gpu/task/task.hpp"

namespace kernelmill {

namespace {

constexpr int max_depth = 64;
constexpr size_t max_length = 1000;

enum operation : int64_t {
  push_number,
  push_name,
  op_add,
  op_subtract,
  op_multiply,
  op_divide,
  op_modulo,
  op_min,
  op_max,
  op_ceil_div,
  op_negate,
  no_operation = -1,
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class parser {
public:
  parser(const std::string& text, std::vector<int64_t>& code, std::vector<std::string>& names)
      : text_(text), code_(code), names_(names) {}

  // Returns the cause of the failure, or nothing.
  std::string run() {
    sum(0);
    skip();
    if (cause_.empty() && at_ < text_.size())
      fail("unexpected '" + std::string(1, text_[at_]) + "'");
    return cause_;
  }

private:
  void fail(const std::string& cause) {
    if (cause_.empty()) cause_ = cause + " at column " + std::to_string(at_ + 1);
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void emit(int64_t op, int64_t operand = 0) {
    code_.push_back(op);
    code_.push_back(operand);
  }

  void sum(int depth) {
    product(depth);
    while (cause_.empty()) {
      if (take('+')) {
        product(depth);
        emit(op_add);
      } else if (take('-')) {
        product(depth);
        emit(op_subtract);
      } else {
        return;
      }
    }
  }

  void product(int depth) {
    unary(depth);
    while (cause_.empty()) {
      int64_t op = take('*')   ? op_multiply
                   : take('/') ? op_divide
                   : take('%') ? op_modulo
                               : no_operation;
      if (op < 0) return;
      unary(depth);
      emit(op);
    }
  }

  void unary(int depth) {
    if (depth > max_depth) return fail("nested too deeply");
    if (take('-')) {
      unary(depth + 1);
      emit(op_negate);
    } else {
      primary(depth + 1);
    }
  }

  void primary(int depth) {
    skip();
    if (at_ >= text_.size()) return fail("the text ends too early");
    if (take('(')) {
      sum(depth);
      if (!take(')')) fail("expected ')'");
    } else if (is_digit(text_[at_])) {
      number();
    } else if (is_letter(text_[at_])) {
      name(depth);
    } else {
      fail("unexpected '" + std::string(1, text_[at_]) + "'");
    }
  }

  void number() {
    int64_t value = 0;
    auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem != std::errc{}) return fail("a number that does not fit 64 bits");
    at_ = static_cast<size_t>(end - text_.data());
    emit(push_number, value);
  }

  void name(int depth) {
    size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    auto word = text_.substr(start, at_ - start);
    if (take('(')) return call(word, depth);
    auto found = std::find(names_.begin(), names_.end(), word);
    emit(push_name, found - names_.begin());
    if (found == names_.end()) names_.push_back(word);
  }

  void call(const std::string& function, int depth) {
    int64_t op = function == "min"        ? op_min
                 : function == "max"      ? op_max
                 : function == "ceil_div" ? op_ceil_div
                                          : no_operation;
    if (op < 0) return fail("no function '" + function + "' (there are min, max, ceil_div)");
    sum(depth);
    if (!take(',')) return fail("expected ','");
    sum(depth);
    if (!take(')')) return fail("expected ')'");
    emit(op);
  }

  const std::string& text_;
  std::vector<int64_t>& code_;
  std::vector<std::string>& names_;
  std::string cause_;
  size_t at_ = 0;
};

// Returns the cause of a failure, or null.
const char* apply(int64_t op, int64_t a, int64_t b, int64_t& result) {
  const char* overflow = "the value does not fit 64 bits";
  switch (op) {
    case op_add: return __builtin_add_overflow(a, b, &result) ? overflow : nullptr;
    case op_subtract: return __builtin_sub_overflow(a, b, &result) ? overflow : nullptr;
    case op_multiply: return __builtin_mul_overflow(a, b, &result) ? overflow : nullptr;
    case op_min: result = std::min(a, b); return nullptr;
    case op_max: result = std::max(a, b); return nullptr;
    default: break;
  }
  if (b == 0) return "division by zero";
  if (b == -1) { // INT64_MIN / -1 traps
    if (op == op_modulo) {
      result = 0;
      return nullptr;
    }
    return __builtin_sub_overflow(int64_t{0}, a, &result) ? overflow : nullptr;
  }
  if (op == op_modulo) result = a % b;
  if (op == op_divide) result = a / b;
  if (op == op_ceil_div) result = a / b + (a % b != 0 && (a > 0) == (b > 0) ? 1 : 0);
  return nullptr;
}

} // namespace

expected<expression> expression::parse(const std::string& text) {
  if (text.size() > max_length)
    return configuration_error("bad_expression", "failed to read an expression: it has more than " +
                                                     std::to_string(max_length) + " characters");
  expression result;
  result.text_ = text;
  auto cause = parser{text, result.code_, result.names_}.run();
  if (!cause.empty())
    return configuration_error("bad_expression",
                               "failed to read expression \"" + text + "\": " + cause,
                               "write integers, scalar names, + - * / % ( ), min, max, ceil_div");
  return result;
}

expected<int64_t> expression::evaluate(const scalar_values& scalars) const {
  auto fail = [this](const std::string& cause) {
    return configuration_error("bad_expression",
                               "failed to evaluate expression \"" + text_ + "\": " + cause);
  };
  std::vector<int64_t> stack;
  for (size_t i = 0; i + 1 < code_.size(); i += 2) {
    if (code_[i] == push_number) {
      stack.push_back(code_[i + 1]);
    } else if (code_[i] == push_name) {
      const auto& name = names_[static_cast<size_t>(code_[i + 1])];
      auto found = scalars.find(name);
      if (found == scalars.end()) return fail("no scalar is named '" + name + "'");
      stack.push_back(found->second);
    } else {
      int64_t right = stack.back();
      int64_t left = 0; // -x is 0 - x
      if (code_[i] != op_negate) {
        stack.pop_back();
        left = stack.back();
      }
      auto op = code_[i] == op_negate ? int64_t{op_subtract} : code_[i];
      if (const char* cause = apply(op, left, right, stack.back())) return fail(cause);
    }
  }
  if (stack.empty()) return fail("it is empty");
  return stack.back();
}

} // namespace kernelmill
