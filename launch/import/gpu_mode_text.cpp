#include "launch/import/gpu_mode_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string_view>

#include "messages/base/text.hpp"

namespace kernelmill::gpu_mode {

namespace {

// Names of the suite's utils.py that only its check and its determinism need.
const std::vector<std::string>& known_utilities() {
  static const std::vector<std::string> known{"make_match_reference", "match_reference",
                                              "verbose_allclose",     "verbose_allequal",
                                              "DeterministicContext", "DisableCuDNNTF32"};
  return known;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t count_of_words(std::string_view text, std::string_view word) {
  size_t result = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    auto behind = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (behind == text.size() || !is_word(text[behind])))
      ++result;
  }
  return result;
}

// A function of the module's level, with what is indented below its head.
std::string function_of(std::string_view code, const std::string& name) {
  auto at = code.find("\ndef " + name + "(");
  if (at == code.npos) return {};
  auto rest = code.substr(at + 1);
  std::string result;
  bool is_head = true;
  while (!rest.empty()) {
    auto line = next_line(rest);
    bool inside =
        line.empty() || line[0] == ' ' || line[0] == '\t' || line[0] == ')' || line[0] == '#';
    if (!inside && !is_head) break;
    is_head = false;
    result += std::string{line} + "\n";
  }
  return result;
}

std::string without_comments(std::string_view code) {
  std::string result;
  while (!code.empty()) {
    auto line = next_line(code);
    result += std::string{line.substr(0, line.find('#'))} + "\n";
  }
  return result;
}

// "a, f(b, c)" as its parts at the outermost level; a bracket around all of it is taken off.
std::vector<std::string> parts_of(std::string_view expression) {
  auto text = trimmed(expression);
  std::vector<std::string> result{""};
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::string_view{"([{"}.find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view{")]}"}.find(text[i]) != std::string_view::npos) --depth;
    if (depth == 0 && text[i] == ')' && i + 1 == text.size() && text[0] == '(' &&
        result.size() == 1)
      return parts_of(text.substr(1, text.size() - 2));
    if (text[i] == ',' && depth == 0)
      result.emplace_back();
    else
      result.back() += text[i];
  }
  for (auto& x : result) x = std::string{trimmed(x)};
  if (result.size() > 1 && result.back().empty()) result.pop_back();
  return result;
}

// What the last `return` of a function gives, also over several lines.
std::string returned_by(const std::string& function) {
  auto at = function.rfind(" return ");
  if (at == function.npos) return {};
  std::string result;
  int depth = 0;
  for (size_t i = at + 8; i < function.size(); ++i) {
    char c = function[i];
    if (std::string_view{"([{"}.find(c) != std::string_view::npos) ++depth;
    if (std::string_view{")]}"}.find(c) != std::string_view::npos) --depth;
    if (c == '\n' && depth <= 0) break;
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

// The names that the reference gives to its inputs: of "a, b, output = data".
std::vector<std::string> unpacked_by(const std::string& function) {
  static const std::regex form{
      R"(\n[ \t]+\(?((?:[A-Za-z_]\w*[ \t]*,\s*)+[A-Za-z_]\w*),?\s*\)? = data\b)"};
  std::smatch found;
  if (!std::regex_search(function, found, form)) return {};
  return parts_of(found[1].str());
}

bool writes_to(const std::string& function, const std::string& name) {
  if (name == "_") return false;
  return std::regex_search(function,
                           std::regex{"\\b" + name + R"((\[[^=\n]*\]\s*=[^=]|\.copy_\())"});
}

// "torch.empty(...)" and nothing that would fill it.
bool is_empty_tensor(std::string_view text) {
  if (!text.starts_with("torch.empty(") && !text.starts_with("torch.empty_like(")) return false;
  int depth = 0;
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if (text[end] == '(') ++depth;
    if (text[end] == ')' && --depth == 0) break;
  }
  auto behind = trimmed(text.substr(std::min(end + 1, text.size())));
  behind = trimmed(behind.substr(0, behind.find('\n')));
  return behind.empty() || behind.starts_with(".contiguous()") || !behind.starts_with(".");
}

// Whether generate_input makes it only as a place for results.
bool is_empty_memory(const std::string& function, const std::string& part) {
  if (is_empty_tensor(part)) return true;
  if (part.empty() || !std::all_of(part.begin(), part.end(), is_word)) return false;
  std::smatch made;
  if (!std::regex_search(function, made, std::regex{"\\n[ \\t]+" + part + R"(\s*=\s*)"}))
    return false;
  return is_empty_tensor(std::string_view{function}.substr(
             static_cast<size_t>(made.position() + made.length()))) &&
         !std::regex_search(function, std::regex{"\\b" + part + R"(\.\w+_\()"});
}

// -- what the suite checks --------------------------------------------------------------------

std::optional<double> number_at(const std::string& call, const std::string& key) {
  std::smatch found;
  if (!std::regex_search(call, found, std::regex{key + R"(\s*=\s*([0-9.eE+-]+)\s*[,)])"}))
    return std::nullopt;
  return std::strtod(found[1].str().c_str(), nullptr);
}

// The bound of one call; nothing where it is given by other than numbers.
std::optional<bound> bound_of(const std::string& call) {
  bound result;
  for (auto [key, into] :
       {std::pair{"rtol", &result.relative}, std::pair{"atol", &result.absolute}}) {
    if (!std::regex_search(call, std::regex{"\\b" + std::string{key} + "\\s*="})) continue;
    auto value = number_at(call, key);
    if (!value) return std::nullopt;
    *into = *value;
  }
  return result;
}

// Calls of a function of the suite, with their arguments.
std::vector<std::string> calls_of(const std::string& code, const std::string& name) {
  std::vector<std::string> result;
  for (auto at = code.find(name + "("); at != code.npos; at = code.find(name + "(", at + 1)) {
    if (at > 0 && is_word(code[at - 1])) continue;
    int depth = 0;
    auto end = at + name.size();
    for (; end < code.size(); ++end) {
      if (code[end] == '(') ++depth;
      if (code[end] == ')' && --depth == 0) break;
    }
    result.push_back(code.substr(at, end + 1 - at));
  }
  return result;
}

// Whether outputs are compared with the reference's; `into` gets the bound where it is one.
bool compares(const std::string& code, std::optional<bound>& into) {
  std::string check = function_of(code, "check_implementation");
  if (check.empty()) {
    auto at = code.find("\ncheck_implementation = make_match_reference(");
    if (at == code.npos) return false;
    check = code.substr(at);
  }
  if (!calls_of(check, "verbose_allequal").empty()) into = bound{0, 0};
  std::vector<std::optional<bound>> found;
  for (const char* name : {"make_match_reference", "match_reference", "verbose_allclose"})
    for (const auto& call : calls_of(check, name)) found.push_back(bound_of(call));
  if (found.empty()) return into.has_value();
  bool same = std::all_of(found.begin(), found.end(), [&](const auto& x) {
    return x && x->relative == found[0]->relative && x->absolute == found[0]->absolute;
  });
  if (found[0] && same) into = found[0];
  return true;
}

// -- imports ------------------------------------------------------------------------------------

// Takes out imports of the suite's own modules. Returns what cannot be had.
std::string take_imports(const std::string& reference, std::string& code) {
  std::string_view rest = reference;
  while (!rest.empty()) {
    auto line = std::string{next_line(rest)};
    auto stripped = std::string{trimmed(line)};
    if (stripped.starts_with("import aiter") || stripped.starts_with("from aiter"))
      return "it needs aiter, and with it an AMD GPU";
    if (stripped.starts_with("import torch.distributed")) return "it needs several GPUs";
    bool own =
        stripped.starts_with("from utils import ") || stripped.starts_with("from task import ");
    if (!own) {
      code += line + "\n";
      continue;
    }
    while (line.find('(') != line.npos && line.find(')') == line.npos && !rest.empty())
      line += std::string{next_line(rest)};
    if (stripped.starts_with("from task")) continue;
    auto names = line.substr(line.find("import ") + 7);
    std::erase_if(names, [](char c) { return c == '(' || c == ')'; });
    for (const auto& name : parts_of(names))
      if (const auto& known = known_utilities();
          std::find(known.begin(), known.end(), name) == known.end())
        return "it needs another function of utils.py";
  }
  return {};
}

} // namespace

std::string read_reference(const std::string& reference, const std::string& types,
                           reference_text& into) {
  std::string text = "\n";
  if (auto reason = take_imports(reference, text); !reason.empty()) return reason;
  auto code = without_comments(text);
  auto generate = function_of(code, "generate_input");
  auto kernel = function_of(code, "ref_kernel");
  if (generate.empty() || kernel.empty()) return "it lacks generate_input or ref_kernel";
  if (!compares(code, into.tolerance)) return "its check is no comparison with the reference";
  auto declared = without_comments(types);
  for (const char* other : {"Dict", "dict", "Module", "Config", "List", "list"})
    if (count_of_words(declared.substr(0, declared.find("class ")), other) > 0)
      return "its inputs are other than tensors and numbers";
  if (auto names = unpacked_by(kernel); !names.empty()) {
    auto parts = parts_of(returned_by(generate));
    auto returned = parts_of(returned_by(kernel));
    for (unsigned i = 0; i < names.size(); ++i) {
      bool writes = writes_to(kernel, names[i]);
      bool empty = i < parts.size() && is_empty_memory(generate, parts[i]);
      bool given = std::find(returned.begin(), returned.end(), names[i]) != returned.end();
      if (!writes && !empty && !given) continue;
      into.mutates.push_back(i);
      if (!writes) into.copied.push_back(i);
    }
    into.takes_tuple = true;
  } else {
    into.takes_tuple = parts_of(returned_by(generate)).size() > 1;
  }
  if (into.copied.size() > 1) return "its outputs cannot be told from its inputs";
  into.code = std::regex_replace(text.substr(1), std::regex{R"((["'])cuda\1)"}, "DEVICE");
  return {};
}

std::string without_task_types(const std::string& submission) {
  static const std::regex form{R"(from task import (\w+(?: *, *\w+)*)( *(?:#.*)?\r?))"};
  static const std::regex comma{R"( *, *)"};
  constexpr size_t longest = 200; // of a line that is matched: std::regex recurses
  std::string result;
  for (size_t at = 0; at < submission.size();) {
    auto end = std::min(submission.find('\n', at), submission.size());
    auto line = submission.substr(at, end - at);
    std::smatch found;
    if (line.starts_with("from task import ") && line.size() <= longest &&
        std::regex_match(line, found, form))
      line = std::regex_replace(found[1].str(), comma, " = ") + " = object" + found[2].str();
    result += line;
    if (end < submission.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

} // namespace kernelmill::gpu_mode
