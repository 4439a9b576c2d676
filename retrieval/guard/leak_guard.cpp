#include "retrieval/guard/leak_guard.hpp"

#include <algorithm>
#include <array>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kernelmill {

namespace {

constexpr size_t gram = 5;
constexpr size_t max_code_bytes = 256 << 10; // a candidate is smaller; see the policy's token limit

// Words of the language keep their meaning under renaming. Sorted; see the assertion.
constexpr std::array<std::string_view, 34> keywords = {
    "alignas", "alignof",   "auto",     "bool",     "break",  "case",   "char",
    "const",   "constexpr", "continue", "default",  "delete", "do",     "double",
    "else",    "float",     "for",      "goto",     "if",     "inline", "int",
    "long",    "new",       "return",   "short",    "signed", "sizeof", "static",
    "struct",  "switch",    "template", "unsigned", "void",   "while"};
static_assert(std::is_sorted(keywords.begin(), keywords.end()));

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_decimal(c) || c == '_';
}

/// Walks over code token by token; comments, white space and preprocessor lines are none.
class token_reader {
public:
  explicit token_reader(std::string_view code) : code_(code) {}

  /// Returns the next normalized token, empty at the end.
  std::string_view next() {
    for (;;) {
      skip_silence();
      if (at_ >= code_.size()) return {};
      line_start_ = false;
      char c = code_[at_];
      if (is_decimal(c) || (c == '.' && at_ + 1 < code_.size() && is_decimal(code_[at_ + 1])))
        return number();
      if (c == '"' || c == '\'') return literal(c);
      if (!is_name_byte(c)) return code_.substr(at_++, 1);
      if (auto token = name(); !token.empty()) return token;
    }
  }

private:
  void skip_silence() {
    while (at_ < code_.size()) {
      char c = code_[at_];
      if (c == '\n') {
        line_start_ = true;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\\') {
        ++at_;
      } else if (code_.substr(at_, 2) == "//" || (c == '#' && line_start_)) {
        at_ = std::min(code_.find('\n', at_), code_.size());
      } else if (code_.substr(at_, 2) == "/*") {
        auto end = code_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? code_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view number() {
    auto begin = at_;
    while (at_ < code_.size() &&
           (is_name_byte(code_[at_]) || code_[at_] == '.' || code_[at_] == '\'')) {
      ++at_;
    }
    auto text = code_.substr(begin, at_ - begin);
    if (text.starts_with("0x") || text.starts_with("0X")) return text;
    while (text.size() > 1 && std::string_view{"fFlLuUzZ.0"}.find(text.back()) != text.npos &&
           (text.back() != '0' || text.find('.') != text.npos))
      text.remove_suffix(1);
    return text;
  }

  /// Empty for words that change nothing, such as `restrict` in any dress.
  std::string_view name() {
    auto begin = at_;
    while (at_ < code_.size() && is_name_byte(code_[at_])) ++at_;
    auto text = code_.substr(begin, at_ - begin);
    if (std::binary_search(keywords.begin(), keywords.end(), text)) return text;
    if (text.find("restrict") != text.npos || text == "register" || text == "volatile") return {};
    skip_silence();
    bool called = at_ < code_.size() && code_[at_] == '(';
    return called ? text : "v";
  }

  std::string_view literal(char quote) {
    ++at_;
    while (at_ < code_.size() && code_[at_] != quote && code_[at_] != '\n')
      at_ += code_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, code_.size());
    return "\"";
  }

  std::string_view code_;
  size_t at_ = 0;
  bool line_start_ = true;
};

/// Where what begins with `mark` ends: in front of its mark, or of the end of a line.
size_t end_of_text(std::string_view code, size_t at, std::string_view mark) {
  for (; at < code.size(); ++at) {
    if (code.substr(at, mark.size()) == mark) break;
    if (mark.size() == 1 && code[at] == '\n') break;
    if (code[at] == '\\') ++at;
  }
  return std::min(at, code.size());
}

/// What stands in comments and in quotes, C++'s and Python's: the tokens of code leave it out, a
/// prompt shows it.
std::string asides_of(std::string_view code) {
  std::string result;
  auto is_at = [&](size_t i, std::string_view mark) { return code.substr(i, mark.size()) == mark; };
  for (size_t i = 0; i < code.size();) {
    auto begin = i, end = i;
    if (is_at(i, "//") || code[i] == '#') {
      begin += is_at(i, "//") ? 2 : 1;
      i = end = std::min(code.find('\n', i), code.size());
    } else if (is_at(i, "/*")) {
      end = std::min(code.find("*/", begin += 2), code.size());
      i = std::min(end + 2, code.size());
    } else if (code[i] == '"' || code[i] == '\'') {
      auto mark = code.substr(i, is_at(i, "\"\"\"") || is_at(i, "'''") ? 3 : 1);
      end = end_of_text(code, begin += mark.size(), mark);
      i = std::min(end + mark.size(), code.size());
    } else {
      ++i;
      continue;
    }
    result.append(code.substr(std::min(begin, end), end - std::min(begin, end))) += '\n';
  }
  return result;
}

size_t shared_between(const shingle_set& a, const shingle_set& b) {
  size_t shared = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) {
      ++shared;
      ++i, ++j;
    } else if (*i < *j) {
      ++i;
    } else {
      ++j;
    }
  }
  return shared;
}

} // namespace

shingle_set shingles_of(std::string_view code) {
  std::vector<uint64_t> tokens;
  token_reader reader{code.substr(0, max_code_bytes)};
  for (auto token = reader.next(); !token.empty(); token = reader.next())
    tokens.push_back(XXH3_64bits(token.data(), token.size()));
  shingle_set result;
  auto width = std::min(gram, tokens.size());
  for (size_t i = 0; width > 0 && i + width <= tokens.size(); ++i)
    result.push_back(XXH3_64bits(tokens.data() + i, width * sizeof(uint64_t)));
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

resemblance compare(const shingle_set& a, const shingle_set& b) {
  if (a.empty() || b.empty()) return {};
  auto shared = static_cast<double>(shared_between(a, b));
  auto both = static_cast<double>(a.size() + b.size()) - shared;
  return {shared / both, shared / static_cast<double>(std::min(a.size(), b.size()))};
}

bool near_duplicate(const shingle_set& a, const shingle_set& b, const leak_thresholds& limits) {
  auto x = compare(a, b);
  if (x.jaccard >= limits.jaccard) return true;
  return std::min(a.size(), b.size()) >= limits.min_shingles && x.containment >= limits.containment;
}

std::string leak_guard::root_of(const std::string& task) const {
  auto root = task;
  for (auto i = related_.find(root); i != related_.end(); i = related_.find(root)) root = i->second;
  return root;
}

void leak_guard::add_solution(const std::string& task, std::string_view code) {
  auto set = shingles_of(code);
  if (task.empty() || set.empty()) return;
  auto& x = tasks_[root_of(task)];
  // A run verifies the same kernel many times over; whatever resembles the newcomer resembles the
  // one that is here, but for a margin at the thresholds.
  constexpr double same = 0.95;
  auto is_least = [](size_t part, size_t all) {
    return static_cast<double>(part) > same * static_cast<double>(all);
  };
  auto seen = std::count_if(set.begin(), set.end(), [&](uint64_t h) { return x.all.contains(h); });
  if (is_least(static_cast<size_t>(seen), set.size())) // else it resembles none so much
    for (const auto& one : x.solutions)
      if (is_least(std::min(one.size(), set.size()), std::max(one.size(), set.size())) &&
          compare(one, set).jaccard > same)
        return;
  x.all.insert(set.begin(), set.end());
  x.solutions.push_back(std::move(set));
}

void leak_guard::relate(const std::string& task, const std::string& other) {
  auto a = root_of(task), b = root_of(other);
  if (a == b) return;
  related_[b] = a;
  auto moved = tasks_.extract(b);
  if (moved.empty()) return;
  auto& target = tasks_[a];
  target.all.merge(moved.mapped().all);
  for (auto& x : moved.mapped().solutions) target.solutions.push_back(std::move(x));
}

std::vector<std::string> leak_guard::related(const std::string& task) const {
  auto root = root_of(task);
  std::vector<std::string> result{task};
  if (root != task) result.push_back(root);
  for (const auto& [other, towards] : related_)
    if (other != task && root_of(other) == root) result.push_back(other);
  return result;
}

bool leak_guard::resembles(const known& x, const shingle_set& code) const {
  auto overlap = static_cast<size_t>(
      std::count_if(code.begin(), code.end(), [&](uint64_t h) { return x.all.contains(h); }));
  for (const auto& solution : x.solutions) {
    // `overlap` bounds what the two can share, so most pairs need no comparison.
    auto least = limits_.containment * static_cast<double>(std::min(code.size(), solution.size()));
    auto least_jaccard =
        limits_.jaccard * static_cast<double>(std::max(code.size(), solution.size()));
    if (static_cast<double>(overlap) < std::min(least, least_jaccard)) continue;
    if (near_duplicate(code, solution, limits_)) return true;
  }
  return false;
}

bool leak_guard::withholds(const std::string& asking_task, const std::string& entry_task,
                           const shingle_set& code) const {
  if (asking_task.empty()) return false;
  auto root = root_of(asking_task);
  if (!entry_task.empty() && root_of(entry_task) == root) return true;
  auto x = tasks_.find(root);
  return x != tasks_.end() && resembles(x->second, code);
}

bool leak_guard::withholds(const asking_task& asks, const guarded_entry& x) const {
  if (asks.task.empty()) return false;
  if (withholds(asks.task, std::string{x.task}, x.shingles ? *x.shingles : shingle_set{}))
    return true;
  if (auto known = tasks_.find(root_of(asks.task)); known != tasks_.end() && !x.kernel.empty())
    if (auto asides = shingles_of(asides_of(x.kernel.substr(0, max_code_bytes))); !asides.empty())
      if (resembles(known->second, asides)) return true;
  if (!asks.name.empty() && asks.name == problem_name(x.task)) return true;
  return computes_the_same(asks, x.reference, x.reference_signature) ||
         computes_the_same(asks, x.kernel, x.kernel_signature);
}

size_t leak_guard::solutions() const {
  size_t sum = 0;
  for (const auto& [task, x] : tasks_) sum += x.solutions.size();
  return sum;
}

} // namespace kernelmill
