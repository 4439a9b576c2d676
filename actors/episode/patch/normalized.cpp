#include "actors/episode/patch/normalized.hpp"

#include <algorithm>
#include <vector>

namespace kernelmill {

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\n';
}

bool is_word(char c) {
  auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// Appends a character, with a space before it where two words would become one.
void put(std::string& out, char c, bool& blank) {
  if (blank && !out.empty() && is_word(out.back()) && is_word(c)) out += ' ';
  blank = false;
  out += c;
}

// The end of a string or character literal that begins at `at`; the text's end where it has none.
size_t end_of_literal(std::string_view text, size_t at) {
  char mark = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == mark)
      return i + 1;
  }
  return text.size();
}

// The same of R"x(...)x", whose first quote is at `at`.
size_t end_of_raw_literal(std::string_view text, size_t at) {
  auto open = text.find('(', at);
  if (open == text.npos) return text.size();
  auto close = ")" + std::string{text.substr(at + 1, open - at - 1)} + "\"";
  auto found = text.find(close, open);
  return found == text.npos ? text.size() : found + close.size();
}

} // namespace

std::string normalized_cpp(std::string_view text) {
  std::string out;
  bool blank = false;
  bool directive = false; // whose end is a line's end
  bool begins = true;     // nothing but blanks and comments is before it on its line
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    auto two = text.substr(i, 2);
    if (two == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (two == "/*") {
      auto end = text.find("*/", i + 2);
      i = end == text.npos ? text.size() : end + 2;
      blank = true;
    } else if (two == "\\\n") {
      i += 2;
      blank = true;
    } else if (is_blank(c)) {
      if (c == '\n' && directive) out += '\n';
      directive = directive && c != '\n';
      begins = begins || c == '\n';
      blank = true;
      ++i;
    } else if (c == '"' || (c == '\'' && (out.empty() || !is_word(out.back())))) {
      bool raw = c == '"' && !blank && !out.empty() && out.back() == 'R';
      auto end = raw ? end_of_raw_literal(text, i) : end_of_literal(text, i);
      out += text.substr(i, end - i);
      blank = begins = false;
      i = end;
    } else {
      if (c == '#' && begins && !directive) {
        if (!out.empty() && out.back() != '\n') out += '\n';
        directive = true;
      }
      put(out, c, blank);
      begins = false;
      ++i;
    }
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// -- Python ---------------------------------------------------------------------------------------

namespace {

class python_lines {
public:
  explicit python_lines(std::string_view text) : text_(text) {}

  std::string normalized() {
    while (at_ < text_.size()) {
      indent_ = read_indent();
      read_line();
      end_line();
    }
    return std::move(out_);
  }

private:
  size_t read_indent() {
    size_t width = 0;
    for (; at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'); ++at_)
      width = text_[at_] == '\t' ? (width / 8 + 1) * 8 : width + 1;
    return width;
  }

  // Up to the end of a logical line: a line's end within brackets is none.
  void read_line() {
    int depth = 0;
    bool blank = false;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\n' && depth <= 0) {
        ++at_;
        return;
      } else if (text_.substr(at_, 2) == "\\\n") {
        at_ += 2;
        blank = true;
      } else if (is_blank(c)) {
        ++at_;
        blank = true;
      } else if (c == '"' || c == '\'') {
        read_string();
        blank = false;
      } else {
        depth += c == '(' || c == '[' || c == '{' ? 1 : 0;
        depth -= c == ')' || c == ']' || c == '}' ? 1 : 0;
        put(line_, c, blank);
        outside_ += c;
        ++at_;
      }
    }
  }

  void read_string() {
    for (int i = 0; i < 2 && !outside_.empty() && is_prefix(outside_.back()); ++i)
      outside_.pop_back();
    auto mark = text_.substr(at_, 3);
    bool is_long = mark == "\"\"\"" || mark == "'''";
    if (!is_long) {
      auto end = end_of_literal(text_, at_);
      line_ += '"';
      line_ += text_.substr(at_ + 1, end - at_ - std::min<size_t>(2, end - at_));
      line_ += '"';
      at_ = end;
      return;
    }
    auto from = at_ + 3;
    auto end = text_.find(mark, from);
    while (end != text_.npos && text_[end - 1] == '\\') end = text_.find(mark, end + 1);
    auto stop = end == text_.npos ? text_.size() : end;
    line_ += "\"" + normalized_cpp(text_.substr(from, stop - from)) + "\"";
    at_ = std::min(stop + 3, text_.size());
  }

  static bool is_prefix(char c) {
    return std::string_view{"rRbBuUfF"}.find(c) != std::string::npos;
  }

  // A line of strings alone is a docstring.
  void end_line() {
    if (!line_.empty() && !outside_.empty()) {
      while (!levels_.empty() && levels_.back() > indent_) levels_.pop_back();
      if (levels_.empty() || levels_.back() < indent_) levels_.push_back(indent_);
      std::replace(line_.begin(), line_.end(), '\n', ' ');
      out_.append(levels_.size() - 1, '\t').append(line_) += '\n';
    }
    line_.clear();
    outside_.clear();
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t indent_ = 0;
  std::vector<size_t> levels_;
  std::string line_;
  std::string outside_; // of strings
  std::string out_;
};

} // namespace

std::string normalized_python(std::string_view code) {
  return python_lines{code}.normalized();
}

} // namespace kernelmill
