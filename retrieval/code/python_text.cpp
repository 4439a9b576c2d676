#include "retrieval/code/python_text.hpp"

#include <algorithm>
#include <array>

namespace kernelmill {

namespace {

constexpr size_t most_name_bytes = 128; // of a name or a number: each use of it costs them

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool continues_name(char c) {
  return begins_name(c) || is_digit(c);
}

constexpr std::array<std::string_view, 24> long_marks = {
    "**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==",
    "!=",  "->",  ":=",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@="};

class python_reader {
public:
  explicit python_reader(std::string_view code) : code_(code) {}

  python_text read() {
    while (at_ < code_.size()) step();
    end_statement();
    find_blocks();
    return std::move(result_);
  }

private:
  void step() {
    if (at_line_start_) measure_indent();
    if (at_ >= code_.size()) return;
    char c = code_[at_];
    if (c == '\n') {
      ++at_;
      at_line_start_ = true;
      if (open_.empty()) end_statement();
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\\') {
      // A line that goes on after a backslash begins no statement.
      if (c == '\\' && code_.substr(at_ + 1, 1) == "\n") ++at_;
      ++at_;
    } else if (c == '#') {
      at_ = std::min(code_.find('\n', at_), code_.size());
    } else if (c == '"' || c == '\'') {
      literal();
    } else if (is_digit(c) || (c == '.' && at_ + 1 < code_.size() && is_digit(code_[at_ + 1]))) {
      number();
    } else if (begins_name(c)) {
      name();
    } else if (c == ';' && open_.empty()) {
      ++at_;
      end_statement();
    } else {
      mark();
    }
  }

  void measure_indent() {
    at_line_start_ = false;
    uint32_t indent = 0;
    for (; at_ < code_.size() && (code_[at_] == ' ' || code_[at_] == '\t'); ++at_)
      indent += code_[at_] == '\t' ? 8 : 1;
    if (open_.empty()) {
      indent_ = indent;
    } else if (auto rest = code_.substr(at_, 6);
               rest.starts_with("def ") || rest.starts_with("class ")) {
      // A bracket that nothing closes would otherwise swallow all that follows.
      end_statement();
      indent_ = indent;
    }
  }

  void add(python_kind kind, std::string_view text) {
    if (result_.tokens.size() == first_) statement_indent_ = indent_;
    auto index = static_cast<uint32_t>(result_.tokens.size());
    result_.tokens.push_back({kind, text, index});
  }

  void literal() {
    auto quote = code_.substr(at_, 3);
    if (quote != "\"\"\"" && quote != "'''") quote = code_.substr(at_, 1);
    auto begin = at_ + quote.size();
    auto end = begin;
    while (end < code_.size() && code_.substr(end, quote.size()) != quote) {
      if (quote.size() == 1 && code_[end] == '\n') break;
      end += code_[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, code_.size());
    add(python_kind::text, code_.substr(begin, end - begin));
    at_ = end;
    if (code_.substr(at_, quote.size()) == quote) at_ += quote.size();
  }

  void number() {
    auto begin = at_;
    bool hexadecimal = code_.substr(at_, 2) == "0x" || code_.substr(at_, 2) == "0X";
    while (at_ < code_.size()) {
      char c = code_[at_];
      bool sign = !hexadecimal && (c == '-' || c == '+') &&
                  (code_[at_ - 1] == 'e' || code_[at_ - 1] == 'E') && at_ > begin;
      if (!continues_name(c) && c != '.' && !sign) break;
      ++at_;
    }
    add(python_kind::number, code_.substr(begin, std::min(at_ - begin, most_name_bytes)));
  }

  void name() {
    auto begin = at_;
    while (at_ < code_.size() && continues_name(code_[at_])) ++at_;
    auto text = code_.substr(begin, at_ - begin);
    bool quoted = at_ < code_.size() && (code_[at_] == '"' || code_[at_] == '\'');
    bool prefix = quoted && text.size() <= 2 && text.find_first_not_of("rRbBfFuU") == text.npos;
    if (!prefix) add(python_kind::name, text.substr(0, most_name_bytes));
  }

  void mark() {
    auto rest = code_.substr(at_, 3);
    size_t size = 1;
    for (auto x : long_marks)
      if (rest.starts_with(x)) {
        size = x.size();
        break;
      }
    add(python_kind::mark, code_.substr(at_, size));
    char c = code_[at_];
    at_ += size;
    auto index = static_cast<uint32_t>(result_.tokens.size() - 1);
    if (c == '(' || c == '[' || c == '{') {
      open_.push_back(index);
    } else if ((c == ')' || c == ']' || c == '}') && !open_.empty()) {
      result_.tokens[open_.back()].match = index;
      open_.pop_back();
    }
  }

  void end_statement() {
    auto last = static_cast<uint32_t>(result_.tokens.size());
    for (auto i : open_) result_.tokens[i].match = last;
    open_.clear();
    if (last > first_) result_.statements.push_back({first_, last, statement_indent_, 0});
    first_ = last;
  }

  void find_blocks() {
    std::vector<uint32_t> outer;
    auto& all = result_.statements;
    for (uint32_t i = 0; i < all.size(); ++i) {
      while (!outer.empty() && all[outer.back()].indent >= all[i].indent) {
        all[outer.back()].end = i;
        outer.pop_back();
      }
      outer.push_back(i);
    }
    for (auto i : outer) all[i].end = static_cast<uint32_t>(all.size());
  }

  std::string_view code_;
  size_t at_ = 0;
  bool at_line_start_ = true;
  uint32_t indent_ = 0, statement_indent_ = 0, first_ = 0;
  std::vector<uint32_t> open_;
  python_text result_;
};

} // namespace

python_text read_python(std::string_view code) {
  return python_reader{code}.read();
}

} // namespace kernelmill
