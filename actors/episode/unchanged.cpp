#include "actors/episode/unchanged.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "gpu/task/launch_plan.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_code = 1 << 20;

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

// The statements of a module, without imports; a decorator is part of what it decorates.
std::vector<std::string> statements(const std::string& normalized) {
  std::vector<std::string> result;
  std::istringstream lines{normalized};
  bool decorated = false;
  for (std::string line; std::getline(lines, line);) {
    bool begins = line.front() != '\t' && !decorated;
    decorated = line.front() == '@';
    if (begins) result.emplace_back();
    if (!result.empty()) result.back() += line + "\n";
  }
  std::erase_if(result, [](const std::string& x) {
    return x.starts_with("import ") || x.starts_with("from ");
  });
  return result;
}

std::string renamed(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool here = text.substr(i, from.size()) == from && (i == 0 || !is_word(text[i - 1])) &&
                (i + from.size() == text.size() || !is_word(text[i + from.size()]));
    if (here) {
      out += to;
      i += from.size();
    } else {
      out += text[i++];
    }
  }
  return out;
}

// The statements that a copy may consist of: it may leave out what was shown.
std::set<std::string> sayable(const std::string& shown) {
  auto listed = statements(shown);
  std::set<std::string> known{listed.begin(), listed.end()};
  for (auto& x : statements(renamed(shown, "Model", "ModelNew"))) known.insert(std::move(x));
  for (const char* head :
       {"ModelNew=Model\n", "class ModelNew(Model):pass\n", "class ModelNew(Model):\n\tpass\n"})
    known.insert(head);
  return known;
}

bool is_part_of(const std::vector<std::string>& answer, const std::set<std::string>& known) {
  bool defines = false;
  for (const auto& x : answer) {
    if (!known.contains(x)) return false;
    defines = defines || x.find("ModelNew") != x.npos;
  }
  return defines;
}

// -- device code ----------------------------------------------------------------------------------

// Where what begins at `at` ends: behind its body, or behind a semicolon that comes first.
size_t end_of_definition(std::string_view text, size_t at) {
  auto i = std::min(text.find_first_of("{;", at), text.size());
  int depth = 0;
  for (; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

struct gpu_parts {
  std::set<std::string> definitions; // kernels, functions and variables of the GPU
  bool is_all = true;                // there is nothing else but includes and words of linkage
};

// The host's launches are comment lines there, so an answer cannot contain a host function.
gpu_parts gpu_parts_of(const std::string& normalized) {
  gpu_parts result;
  std::string rest;
  for (size_t i = 0; i < normalized.size();) {
    auto at = std::min({normalized.find("__global__", i), normalized.find("__device__", i),
                        normalized.find("__constant__", i), normalized.size()});
    rest.append(normalized, i, at - i);
    i = end_of_definition(normalized, at);
    if (at < normalized.size()) result.definitions.insert(normalized.substr(at, i - at));
  }
  std::istringstream lines{rest};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include")) continue;
    for (std::string_view word : {"extern\"C\"", "static", "inline", "namespace", "{", "}", " "})
      for (size_t at = 0; (at = line.find(word)) != line.npos;) line.erase(at, word.size());
    result.is_all = result.is_all && line.empty();
  }
  return result;
}

// Where an argument of a launch ends.
size_t end_of_argument(std::string_view text, size_t at) {
  for (int depth = 0; at < text.size(); ++at) {
    if (depth == 0 && (text[at] == ',' || text.substr(at, 3) == ">>>")) break;
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
  }
  return at;
}

// "NAME<<<THREADS>>>" of each launch, in order, without blocks: hosts compute them in various ways.
// In device code launches are comment lines, in host code calls.
std::string launches_of(const std::string& code) {
  std::string text;
  for (const auto& line : launch_texts(code)) text += line + "\n";
  text = normalized_cpp(text.empty() ? code : text);
  std::string result;
  for (size_t at = 0; (at = text.find("<<<", at)) != text.npos; at += 3) {
    size_t name = at;
    while (name > 0 && is_word(text[name - 1])) --name;
    auto threads = std::min(end_of_argument(text, at + 3) + 1, text.size());
    result += text.substr(name, at - name) + "<<<" +
              text.substr(threads, end_of_argument(text, threads) - threads) + ">>>";
  }
  return result;
}

// -- what was shown -------------------------------------------------------------------------------

std::vector<std::string> fenced_blocks(std::string_view prompt) {
  std::vector<std::string> result;
  std::istringstream lines{std::string{prompt}};
  std::string fence;
  for (std::string line; std::getline(lines, line);) {
    auto marks = std::min(line.find_first_not_of('`'), line.size());
    if (!fence.empty() && line == fence) {
      fence.clear();
    } else if (!fence.empty()) {
      result.back() += line + "\n";
    } else if (marks >= 3) {
      fence = line.substr(0, marks);
      result.emplace_back();
    }
  }
  return result;
}

std::string baseline_of(const task& x) {
  return read_in_folder(x.directory, x.terms.backend == "cpu" ? "baseline.cpp" : "baseline.cu")
      .value_or("");
}

} // namespace

std::string normalized_python(std::string_view code) {
  return python_lines{code}.normalized();
}

shown_code::shown_code(const task& x, std::string_view prompt)
    : python_(x.contract == contract_kind::torch),
      device_(!python_ && x.terms.contract == contract_kind::device) {
  if (python_) {
    add("the problem's own model", x.torch.code);
  } else {
    add("the starter", x.starter);
    add("the baseline", baseline_of(x));
  }
  for (const auto& shown : fenced_blocks(prompt)) add("an example of the prompt", shown);
}

void shown_code::add(const char* what, std::string_view code) {
  if (python_)
    blocks_.push_back({what, {}, sayable(normalized_python(code))});
  else if (device_)
    blocks_.push_back(
        {what, launches_of(std::string{code}), gpu_parts_of(normalized_cpp(code)).definitions});
  else
    blocks_.push_back({what, normalized_cpp(code), {}});
}

std::string shown_code::copied_in(std::string_view answer) const {
  if (answer.size() > most_code) return {};
  auto normalized = python_ ? normalized_python(answer) : normalized_cpp(answer);
  if (normalized.empty()) return {};
  if (device_) {
    auto parts = gpu_parts_of(normalized);
    if (!parts.is_all || parts.definitions.empty()) return {};
    auto launches = launches_of(std::string{answer});
    for (const auto& x : blocks_)
      if (x.cpp == launches && std::includes(x.statements.begin(), x.statements.end(),
                                             parts.definitions.begin(), parts.definitions.end()))
        return x.what;
    return {};
  }
  auto parts = python_ ? statements(normalized) : std::vector<std::string>{};
  for (const auto& x : blocks_)
    if (python_ ? is_part_of(parts, x.statements) : x.cpp == normalized) return x.what;
  return {};
}

std::string copied_from(const task& x, std::string_view prompt, std::string_view answer) {
  return shown_code{x, prompt}.copied_in(answer);
}

} // namespace kernelmill
