// Sizes that are calculated of others, as Python calculates.

#include <cmath>
#include <string_view>

#include "launch/import/sol/definition.hpp"

namespace kernelmill::sol {

namespace {

constexpr size_t longest_expression = 400;
constexpr int deepest_expression = 32;
constexpr double largest_value = 1e15; // below which a double is exact

tl::unexpected<error> wrong(const std::string& cause) {
  return configuration_error("bad_problem", cause);
}

// One pass from left to right. Values are doubles: whole numbers below 2^53 are exact, and Python's
// "/" gives a double, too.
class calculation {
public:
  calculation(std::string_view text, const std::map<std::string, int64_t>& axes)
      : text_(text), axes_(axes) {}

  expected<double> all() {
    auto result = sum();
    KM_TRY(result);
    if (skip(); at_ < text_.size())
      return wrong("\"" + std::string{text_.substr(at_)} + "\" cannot be read");
    return result;
  }

private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  expected<double> bounded(double x) {
    if (!std::isfinite(x) || std::fabs(x) > largest_value) return wrong("it is too large");
    return x;
  }

  expected<double> sum() {
    auto result = product();
    while (result) {
      bool plus = take("+");
      if (!plus && !take("-")) break;
      auto next = product();
      KM_TRY(next);
      result = bounded(plus ? *result + *next : *result - *next);
    }
    return result;
  }

  expected<double> product() {
    auto result = factor();
    while (result) {
      skip();
      if (text_.substr(at_).starts_with("**")) break;
      char kind = take("//") ? 'q' : take("*") ? '*' : take("/") ? '/' : take("%") ? '%' : ' ';
      if (kind == ' ') break;
      auto next = factor();
      KM_TRY(next);
      if (kind != '*' && *next == 0) return wrong("it divides by zero");
      double quotient = kind == '*' ? 0 : std::floor(*result / *next);
      result = bounded(kind == '*'   ? *result * *next
                       : kind == '/' ? *result / *next
                       : kind == 'q' ? quotient
                                     : *result - quotient * *next);
    }
    return result;
  }

  // Of signs and powers: -2**2 is -4, 2**-1 a half, and 2**3**2 is 2**9.
  expected<double> factor() {
    if (++depth_ > deepest_expression) return wrong("it nests too deep");
    auto result = signed_power();
    --depth_;
    return result;
  }

  expected<double> signed_power() {
    if (take("-")) {
      auto next = factor();
      KM_TRY(next);
      return -*next;
    }
    if (take("+")) return factor();
    auto base = atom();
    KM_TRY(base);
    if (!take("**")) return base;
    auto exponent = factor();
    KM_TRY(exponent);
    return bounded(std::pow(*base, *exponent));
  }

  expected<double> atom() {
    if (take("(")) {
      if (++depth_ > deepest_expression) return wrong("it nests too deep");
      auto inner = sum();
      KM_TRY(inner);
      --depth_;
      if (!take(")")) return wrong("a parenthesis is open");
      return inner;
    }
    skip();
    size_t end = at_;
    auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    };
    while (end < text_.size() && is_part(text_[end])) ++end;
    std::string word{text_.substr(at_, end - at_)};
    if (word.empty()) return wrong("a number or a name is missing");
    at_ = end;
    if (auto found = axes_.find(word); found != axes_.end())
      return static_cast<double>(found->second);
    if (word.find_first_not_of("0123456789.") != word.npos || word.size() > 15 || word == ".")
      return wrong("\"" + word + "\" is no axis");
    return std::strtod(word.c_str(), nullptr);
  }

  std::string_view text_;
  const std::map<std::string, int64_t>& axes_;
  size_t at_ = 0;
  int depth_ = 0;
};

} // namespace

expected<int64_t> evaluate(const std::string& expression,
                           const std::map<std::string, int64_t>& axes) {
  if (expression.size() > longest_expression) return wrong("it is too long");
  auto result = calculation{expression, axes}.all();
  KM_TRY(result);
  if (*result != std::floor(*result)) return wrong("it gives no whole number");
  return static_cast<int64_t>(*result);
}

} // namespace kernelmill::sol
