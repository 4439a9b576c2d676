#pragma once

// Copies of a problem as they may stand in a corpus under other names: of each kind one.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/code/python_text.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill::test {

struct problem_text {
  std::string name; ///< "19_ReLU"
  std::string code; ///< with Model, get_inputs and get_init_inputs
};

/// The text with some of its tokens replaced; what is between tokens stays.
template <class F>
std::string with_tokens(std::string_view code, F&& replacement) {
  auto text = read_python(code);
  std::string result;
  size_t at = 0;
  for (const auto& statement : text.statements)
    for (auto i = statement.first; i < statement.last; ++i) {
      auto place = static_cast<size_t>(text.tokens[i].text.data() - code.data());
      result += code.substr(at, place - at);
      result += replacement(text, statement, i);
      at = place + text.tokens[i].text.size();
    }
  return result + std::string{code.substr(at)};
}

inline bool token_is(const python_text& x, uint32_t i, std::string_view text) {
  return i < x.tokens.size() && x.tokens[i].kind != python_kind::text && x.tokens[i].text == text;
}

/// Says whether the token is within brackets of its statement.
inline bool in_brackets(const python_text& x, const python_statement& s, uint32_t i) {
  for (auto at = s.first; at < i; ++at)
    if (x.tokens[at].match > i) return true;
  return false;
}

/// Other names for Model, for fields and for the variables that hold results.
inline std::string renamed(std::string_view code, const std::string& model) {
  auto text = read_python(code);
  std::set<std::string_view> fields, variables;
  bool in_class = false;
  for (const auto& x : text.statements) {
    if (token_is(text, x.first, "class") || token_is(text, x.first, "def"))
      in_class = token_is(text, x.first, "class");
    if (token_is(text, x.first, "self") && token_is(text, x.first + 1, ".") &&
        token_is(text, x.first + 3, "="))
      fields.insert(text.tokens[x.first + 2].text);
    else if (x.indent > 0 && !in_class && token_is(text, x.first + 1, "=") &&
             text.tokens[x.first].kind == python_kind::name)
      variables.insert(text.tokens[x.first].text);
  }
  // What is a parameter is an argument's name elsewhere.
  for (const auto& x : text.statements)
    if (token_is(text, x.first, "def") && !token_is(text, x.first + 1, "forward"))
      for (auto i = x.first; i < x.last; ++i) variables.erase(text.tokens[i].text);
  return with_tokens(code, [&](const python_text& all, const python_statement& s, uint32_t i) {
    auto token = std::string{all.tokens[i].text};
    if (all.tokens[i].kind != python_kind::name) return token;
    bool behind_dot = i > 0 && token_is(all, i - 1, ".");
    if (behind_dot && token_is(all, i - 2, "self") && fields.contains(token))
      return "part_" + token;
    if (token == "Model" && !behind_dot) return model;
    bool argument =
        token_is(all, i + 1, "=") && in_brackets(all, s, i) && !token_is(all, s.first, "def");
    if (!behind_dot && !argument && s.indent > 0 && variables.contains(token)) return "q_" + token;
    return token;
  });
}

/// Half the indentation, comments of its own, other blank lines.
inline std::string reformatted(std::string_view code) {
  std::string result = "# tuned by hand\n";
  bool literal = false; // within a text of several lines, where `#` begins no comment
  for (size_t at = 0; at < code.size();) {
    auto end = std::min(code.find('\n', at), code.size());
    auto line = code.substr(at, end - at);
    at = end + 1;
    auto first = std::min(line.find_first_not_of(' '), line.size());
    if (first == line.size()) continue;
    result += std::string(first / 2, ' ') + std::string{line.substr(first)};
    size_t quotes = 0;
    for (auto i = line.find("\"\"\""); i != line.npos; i = line.find("\"\"\"", i + 3)) ++quotes;
    if (quotes % 2 == 1) literal = !literal;
    bool open = literal || line.find_first_of("\"'\\") != line.npos;
    result += open ? "\n" : "  # as before\n\n";
  }
  return result;
}

/// Twice the sizes that inputs alone have.
inline std::string resized(std::string_view code) {
  auto text = read_python(code);
  std::set<std::string_view> of_inputs, of_model;
  for (uint32_t i = 0; i < text.statements.size(); ++i) {
    const auto& x = text.statements[i];
    if (!token_is(text, x.first, "def")) continue;
    bool inputs = token_is(text, x.first + 1, "get_inputs");
    if (!inputs && !token_is(text, x.first + 1, "get_init_inputs")) continue;
    for (auto inner = i; inner < x.end; ++inner)
      for (auto t = text.statements[inner].first; t < text.statements[inner].last; ++t)
        (inputs ? of_inputs : of_model).insert(text.tokens[t].text);
  }
  return with_tokens(code, [&](const python_text& all, const python_statement& s, uint32_t i) {
    auto token = std::string{all.tokens[i].text};
    auto name = all.tokens[s.first].text;
    bool constant = s.indent == 0 && i == s.first + 2 && token_is(all, s.first + 1, "=") &&
                    all.tokens[i].kind == python_kind::number;
    return constant && of_inputs.contains(name) && !of_model.contains(name) ? "2 * " + token
                                                                            : token;
  });
}

inline std::string wrapped(std::string_view code) {
  return renamed(code, "Inner") + "\n\nclass Service(nn.Module):\n"
                                  "    def __init__(self, *args, **kwargs):\n"
                                  "        super().__init__()\n"
                                  "        self.inner = Inner(*args, **kwargs)\n\n"
                                  "    def forward(self, *inputs):\n"
                                  "        return self.inner(*inputs)\n";
}

/// Code of no other kernel: its calls have names of their own.
inline std::string made_up_kernel(const std::string& salt) {
  auto hash = std::hash<std::string>{}(salt);
  std::string result = "__global__ void run(const float* x, float* y, int n) {\n";
  for (int i = 0; i < 24; ++i)
    result += "  y[" + std::to_string((hash >> i) % 7) + "] = step_" +
              std::to_string((hash * 31 + static_cast<size_t>(i) * 7919) % 99991) + "(x[n % " +
              std::to_string(3 + (hash >> (i + 9)) % 5) + "], y);\n";
  return result + "}\n";
}

inline const std::vector<std::string>& leak_kinds() {
  static const std::vector<std::string> kinds = {"renamed", "reformatted", "resized",  "language",
                                                 "cu",      "wrapped",     "model_new"};
  return kinds;
}

/// The entry that holds this problem's solution under another name.
inline kernel_example planted(const problem_text& x, const std::string& kind) {
  kernel_example result;
  result.id = kind + ":" + x.name;
  result.task = "corpus/" + std::to_string(std::hash<std::string>{}(x.name) % 1000003);
  result.backend = kind == "language" ? "hip" : "cuda";
  result.language = result.backend;
  result.source = made_up_kernel(result.id);
  if (kind == "renamed") result.reference = renamed(x.code, "Odd");
  if (kind == "reformatted") result.reference = reformatted(x.code);
  if (kind == "resized") result.reference = resized(x.code);
  if (kind == "language") result.reference = x.code;
  if (kind == "wrapped") result.reference = wrapped(x.code);
  if (kind == "cu") result.task = "others/" + x.name + ".cu"; // a file beside the problem, no more
  if (kind == "model_new") {
    result.source = renamed(x.code, "ModelNew");
    result.language = "python";
  }
  return result;
}

} // namespace kernelmill::test
