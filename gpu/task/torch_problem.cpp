// What can be said of a problem in Python without running it.

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether a line at the module's level begins with `what` as a whole word: "def get_inputs",
// "class Model", "get_inputs" of an assignment.
bool begins_a_line(std::string_view code, std::string_view what) {
  for (size_t at = code.find(what); at != code.npos; at = code.find(what, at + 1)) {
    auto behind = at + what.size();
    if ((at == 0 || code[at - 1] == '\n') && (behind == code.size() || !is_word(code[behind])))
      return true;
  }
  return false;
}

// -- a problem's interface ------------------------------------------------------------------------

// Whether a line leaves a text in three quotes open that was closed before, or the other way round.
bool turns_text(std::string_view line) {
  size_t marks = 0;
  for (size_t i = 0; i + 2 < line.size(); ++i)
    if ((line[i] == '"' || line[i] == '\'') && line[i + 1] == line[i] && line[i + 2] == line[i]) {
      ++marks;
      i += 2;
    }
  return marks % 2 == 1;
}

// The statements of the module's level, with what is indented below them.
std::vector<std::string> top_statements(const std::string& code) {
  std::vector<std::string> result;
  std::istringstream lines{code};
  bool in_text = false;
  for (std::string line; std::getline(lines, line);) {
    bool begins = !in_text && !line.empty() &&
                  std::string_view{" \t#)]}"}.find(line.front()) == std::string_view::npos;
    if (turns_text(line)) in_text = !in_text;
    if (begins) result.emplace_back();
    if (!result.empty() && !line.starts_with("#")) result.back() += line + "\n";
  }
  for (auto& x : result) x.erase(x.find_last_not_of('\n') + 1);
  return result;
}

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > at) result.emplace(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

// What a statement binds: the name of a function, or the targets of an assignment.
std::set<std::string> bound_by(const std::string& statement) {
  for (const char* other : {"class ", "import ", "from ", "if ", "for ", "with ", "try", "@", "\""})
    if (statement.starts_with(other)) return {};
  bool is_function = statement.starts_with("def ");
  auto end = statement.find(is_function ? '(' : '=');
  if (end == statement.npos) return {};
  return words_of(
      std::string_view{statement}.substr(is_function ? 4 : 0, is_function ? end - 4 : end));
}

// "def forward(self, x):" of a class, up to the colon that ends it; empty: it has none.
std::string head_of(std::string_view body, const std::string& method) {
  auto at = body.find(" def " + method + "(");
  if (at == body.npos) return {};
  int depth = 0;
  for (size_t end = at; end < body.size(); ++end) {
    if (std::string_view{"([{"}.find(body[end]) != std::string_view::npos) ++depth;
    if (std::string_view{")]}"}.find(body[end]) != std::string_view::npos) --depth;
    if (body[end] == ':' && depth == 0) return std::string{body.substr(at + 1, end - at)};
  }
  return {};
}

} // namespace

std::string interface_of_problem(const std::string& code) {
  auto statements = top_statements(code);
  std::set<std::string> used{"get_inputs", "get_init_inputs"};
  std::vector<std::string> kept;
  std::string model;
  // Backwards: what a name is made of stands before it.
  for (auto x = statements.rbegin(); x != statements.rend(); ++x) {
    if (x->starts_with("class Model(") || x->starts_with("class Model:")) model = *x;
    auto bound = bound_by(*x);
    if (bound.contains("Model") || std::none_of(bound.begin(), bound.end(), [&](const auto& name) {
          return used.contains(name);
        }))
      continue;
    used.merge(words_of(*x));
    kept.push_back(*x);
  }
  std::string result;
  for (auto x = kept.rbegin(); x != kept.rend(); ++x)
    result += (x->starts_with("def ") ? "\n" : "") + *x + "\n";
  std::string heads;
  for (const char* method : {"__init__", "forward"})
    if (auto head = head_of(model, method); !head.empty()) heads += "    " + head + " ...\n";
  if (!heads.empty()) result += "\nclass Model(nn.Module):\n" + heads;
  result.erase(0, result.find_first_not_of('\n'));
  return result;
}

const std::vector<std::string>& torch_precisions() {
  static const std::vector<std::string> known{"fp32", "fp16", "bf16", "own"};
  return known;
}

std::string precision_of_problem(const std::string& code) {
  for (const char* word : {"float16", "half", "float8", "float64", "double", "default_dtype"})
    if (code.find(word) != code.npos) return "own";
  return "fp32";
}

std::string missing_of_problem(const std::string& code) {
  if (!begins_a_line(code, "class Model") && !begins_a_line(code, "Model"))
    return "it defines no class Model";
  for (const std::string name : {"get_inputs", "get_init_inputs"})
    if (!begins_a_line(code, "def " + name) && !begins_a_line(code, name))
      return "it defines no " + name;
  return {};
}

} // namespace kernelmill
