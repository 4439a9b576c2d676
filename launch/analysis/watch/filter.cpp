#include "launch/analysis/watch/filter.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::watch {

namespace {

// What people type for the keys of rows.
const std::map<std::string, std::string>& short_names() {
  static const std::map<std::string, std::string> all{{"age", "age_seconds"},
                                                      {"for", "age_seconds"},
                                                      {"episode", "id"},
                                                      {"reward", "best_reward"},
                                                      {"speedup", "best_speedup_lower"},
                                                      {"wait", "wait_seconds"},
                                                      {"error", "last_error"},
                                                      {"mailbox", "mailbox"},
                                                      // headers of `runs`
                                                      {"infra", "infrastructure"},
                                                      {"best_lower", "best_speedup_lower"},
                                                      {"geomean", "geomean_speedup"},
                                                      {"time", "seconds"},
                                                      {"why", "failure"}};
  return all;
}

std::optional<double> as_number(const std::string& text) {
  double x = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return x;
}

std::string text_of(const json& x) {
  return x.is_string() ? x.get<std::string>() : x.dump();
}

std::string known_list(const condition_keys& keys) {
  return keys.list.empty() ? "the keys are " + joined(keys.names) : keys.list;
}

bool has(const std::vector<std::string>& all, const std::string& x) {
  return std::find(all.begin(), all.end(), x) != all.end();
}

/// Whether a pattern of `*` and `?` is the whole text; in the time of both lengths multiplied.
bool matches(const std::string& pattern, const std::string& text) {
  size_t p = 0, t = 0, star = std::string::npos, behind = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++behind;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

class parser {
public:
  parser(const std::string& text, const condition_keys& keys) : text_(text), keys_(keys) {
    split();
  }

  expected<condition> read() {
    auto result = any_of();
    KM_TRY(result);
    if (at_ < words_.size()) return wrong("'" + shown(words_[at_]) + "' is one word too many");
    return condition{std::move(*result), std::move(used_)};
  }

private:
  static constexpr size_t deepest = 64; // of parentheses

  tl::unexpected<error> wrong(const std::string& what) const {
    return configuration_error("usage", "failed to read the condition '" + text_ + "': " + what,
                               example() + known_list(keys_));
  }

  // With a number, a text and a flag: one of them is what was meant.
  std::string example() const {
    if (keys_.flags.empty()) return "write it like: state=queued and age>60; ";
    bool timed = has(keys_.names, "speedup") && has(keys_.flags, "accepted");
    return "write it like: " +
           (timed ? std::string{"accepted and speedup > 1.5"} : keys_.flags[0]) + " and " +
           keys_.names[0] + " ~ x; ";
  }

  static std::string shown(const std::string& word) {
    return word.starts_with('"') ? word.substr(1) : word;
  }

  void split() {
    static const std::string signs = "=!<>~()";
    for (size_t i = 0; i < text_.size();) {
      if (text_[i] == ' ' || text_[i] == '\t') {
        ++i;
      } else if (text_[i] == '"' || text_[i] == '\'') {
        auto end = text_.find(text_[i], i + 1);
        if (end == std::string::npos) end = text_.size();
        words_.push_back('"' + text_.substr(i + 1, end - i - 1));
        i = std::min(end + 1, text_.size());
      } else if (signs.find(text_[i]) != std::string::npos) {
        size_t n = i + 1 < text_.size() && text_[i + 1] == '=' &&
                           std::string{"=!<>"}.find(text_[i]) != std::string::npos
                       ? 2
                       : 1;
        words_.push_back(text_.substr(i, n));
        i += n;
      } else {
        auto end = text_.find_first_of(signs + " \t\"'", i);
        if (end == std::string::npos) end = text_.size();
        words_.push_back(text_.substr(i, end - i));
        i = end;
      }
    }
  }

  bool take(const std::string& word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  expected<row_filter> any_of() {
    auto left = all_of();
    KM_TRY(left);
    while (take("or")) {
      auto right = all_of();
      KM_TRY(right);
      left = row_filter{[a = *left, b = *right](const json& x) { return a(x) || b(x); }};
    }
    return left;
  }

  expected<row_filter> all_of() {
    auto left = one();
    KM_TRY(left);
    while (take("and")) {
      auto right = one();
      KM_TRY(right);
      left = row_filter{[a = *left, b = *right](const json& x) { return a(x) && b(x); }};
    }
    return left;
  }

  expected<row_filter> one() {
    if (depth_ >= deepest) return wrong("it is nested too deeply");
    if (take("not")) {
      ++depth_;
      auto inner = one();
      --depth_;
      KM_TRY(inner);
      return row_filter{[f = *inner](const json& x) { return !f(x); }};
    }
    if (take("(")) {
      ++depth_;
      auto inner = any_of();
      --depth_;
      KM_TRY(inner);
      if (!take(")")) return wrong("a ')' is missing");
      return inner;
    }
    return comparison();
  }

  expected<row_filter> comparison() {
    if (at_ == words_.size()) return wrong("it ends too early");
    auto key = known_key(shown(words_[at_++]), keys_);
    KM_TRY(key);
    if (!has(used_, *key)) used_.push_back(*key);
    static const std::vector<std::string> signs{"=", "==", "!=", "<", "<=", ">", ">=", "~"};
    if (at_ == words_.size() || !has(signs, words_[at_])) {
      if (has(keys_.flags, *key)) return is_true(*key);
      return wrong("after '" + *key + "' stands one of = != < <= > >= ~");
    }
    auto sign = words_[at_++];
    if (at_ == words_.size()) return wrong("after '" + sign + "' stands a value");
    auto value = words_[at_++];
    if (value.starts_with('"')) value.erase(0, 1);
    auto number = as_number(value);
    if (sign[0] == '<' || sign[0] == '>') {
      if (!number)
        return wrong("'" + value + "' is no number, and '" + sign + "' compares numbers");
      return less_or_greater(*key, sign, *number);
    }
    return same_or_within(*key, sign, value, number);
  }

  static row_filter is_true(const std::string& key) {
    return [=](const json& row) {
      auto i = row.find(key);
      return i != row.end() && i->is_boolean() && i->get<bool>();
    };
  }

  static row_filter less_or_greater(const std::string& key, const std::string& sign,
                                    double number) {
    return [=](const json& row) {
      auto i = row.find(key);
      if (i == row.end() || !i->is_number()) return false;
      auto x = i->get<double>();
      if (sign == "<") return x < number;
      if (sign == "<=") return x <= number;
      if (sign == ">") return x > number;
      return x >= number;
    };
  }

  static row_filter same_or_within(const std::string& key, const std::string& sign,
                                   const std::string& value, std::optional<double> number) {
    bool pattern = value.find_first_of("*?") != std::string::npos;
    return [=](const json& row) {
      auto i = row.find(key);
      bool there = i != row.end() && !i->is_null();
      auto holds = [&](const json& x) {
        if (sign == "~")
          return pattern ? matches(value, text_of(x)) : text_of(x).find(value) != std::string::npos;
        return number && x.is_number() ? x.get<double>() == *number : text_of(x) == value;
      };
      bool any = there && (i->is_array() ? std::any_of(i->begin(), i->end(), holds) : holds(*i));
      return sign == "!=" ? !any : any;
    };
  }

  const std::string& text_;
  const condition_keys& keys_;
  std::vector<std::string> words_; // texts in quotes begin with one
  std::vector<std::string> used_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

// "g10.e2" after "g2.e10": digits count as numbers.
bool comes_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      uint64_t x = 0, y = 0;
      auto end_a = std::from_chars(a.data() + i, a.data() + a.size(), x).ptr;
      auto end_b = std::from_chars(b.data() + j, b.data() + b.size(), y).ptr;
      if (x != y) return x < y;
      i = static_cast<size_t>(end_a - a.data());
      j = static_cast<size_t>(end_b - b.data());
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

/// Nothing of a row without the key.
const json* value_of(const json& row, const std::string& key) {
  auto i = row.find(key);
  if (i == row.end() || i->is_null()) return nullptr;
  return i->is_number() && std::isnan(i->get<double>()) ? nullptr : &*i;
}

bool value_stands_before(const json* a, const json* b, bool down) {
  if (!a || !b) return a && !b;
  const auto &x = down ? *b : *a, &y = down ? *a : *b;
  if (x.is_number() && y.is_number()) return x.get<double>() < y.get<double>();
  if (x.is_string() && y.is_string())
    return comes_before(x.get_ref<const std::string&>(), y.get_ref<const std::string&>());
  return comes_before(text_of(x), text_of(y));
}

} // namespace

expected<std::string> known_key(const std::string& word, const condition_keys& keys) {
  if (has(keys.names, word)) return word;
  if (auto i = short_names().find(word); i != short_names().end() && has(keys.names, i->second))
    return i->second;
  auto meant = closest(word, keys.names);
  return configuration_error(
      "usage", "failed to read the condition: there is no key '" + word + "'",
      (meant.empty() ? "" : "did you mean '" + meant + "'? ") + known_list(keys));
}

expected<condition> parse_condition(const std::string& text, const condition_keys& keys) {
  if (text.find_first_not_of(" \t") == std::string::npos)
    return condition{[](const json&) { return true; }, {}};
  return parser{text, keys}.read();
}

expected<row_filter> parse_filter(const std::string& text, const std::vector<std::string>& keys) {
  auto result = parse_condition(text, {keys, {}, {}});
  KM_TRY(result);
  return std::move(result->holds);
}

bool stands_before(const json& a, const json& b, const std::string& key, bool down) {
  return value_stands_before(value_of(a, key), value_of(b, key), down);
}

expected<void> sort_rows(std::vector<json>& rows, const std::string& key,
                         const std::vector<std::string>& keys) {
  if (key.empty()) return {};
  bool down = key.starts_with("-");
  auto known = known_key(down ? key.substr(1) : key, {keys, {}, {}});
  KM_TRY(known);
  // Each value is looked up once, and a row is moved once.
  std::vector<std::pair<const json*, size_t>> order;
  order.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) order.emplace_back(value_of(rows[i], *known), i);
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return value_stands_before(a.first, b.first, down);
  });
  std::vector<json> sorted;
  sorted.reserve(rows.size());
  for (const auto& [value, i] : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
  return {};
}

} // namespace kernelmill::watch
