#include "actors/episode/unchanged.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "actors/episode/patch/normalized.hpp"
#include "actors/episode/prompt_parts.hpp"
#include "gpu/task/launch_plan.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_code = 1 << 20;
constexpr size_t least_beginning = 1000; // many programs begin with the same few lines

bool is_word(char c) {
  auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

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

// "reference" of "def reference(x):"; empty where a statement defines no function.
std::string_view defined_function(std::string_view statement) {
  constexpr std::string_view head = "def ";
  auto end = statement.find('(');
  if (!statement.starts_with(head) || end == statement.npos) return {};
  return statement.substr(head.size(), end - head.size());
}

// The statements that a copy may consist of: it may leave out what was shown. `function`: that an
// answer may define in place of ModelNew, perhaps as another name of one that was shown.
std::set<std::string> sayable(const std::string& shown, const std::string& function) {
  auto listed = statements(shown);
  std::set<std::string> known{listed.begin(), listed.end()};
  for (auto& x : statements(renamed(shown, "Model", "ModelNew"))) known.insert(std::move(x));
  for (const char* head :
       {"ModelNew=Model\n", "class ModelNew(Model):pass\n", "class ModelNew(Model):\n\tpass\n"})
    known.insert(head);
  if (function.empty()) return known;
  for (const auto& x : listed) {
    std::string name{defined_function(x)};
    if (name.empty() || name == function) continue;
    for (auto& y : statements(renamed(shown, name, function))) known.insert(std::move(y));
    known.insert(function + "=" + name + "\n");
  }
  return known;
}

template <class F>
bool is_made_of(const std::vector<std::string>& answer, const std::string& function, F&& is_known) {
  bool defines = false;
  for (const auto& x : answer) {
    if (!is_known(x)) return false;
    bool is_function =
        !function.empty() && (defined_function(x) == function || x.starts_with(function + "="));
    defines = defines || is_function || x.find("ModelNew") != x.npos;
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

struct fenced_block {
  std::string code;
  bool is_cut = false;
};

std::vector<fenced_block> fenced_blocks(std::string_view prompt) {
  std::vector<fenced_block> result;
  std::istringstream lines{std::string{prompt}};
  std::string fence;
  bool behind = false; // the last line closed a block
  for (std::string line; std::getline(lines, line);) {
    auto marks = std::min(line.find_first_not_of('`'), line.size());
    bool closes = !fence.empty() && line == fence;
    if (closes) {
      fence.clear();
    } else if (!fence.empty()) {
      result.back().code += line + "\n";
    } else if (marks >= 3) {
      fence = line.substr(0, marks);
      result.emplace_back();
    } else if (behind && line == cut_note) {
      result.back().is_cut = true;
    }
    behind = closes;
  }
  return result;
}

// Where the end was not shown, an end of one's own does not make it another answer. The last tenth
// is left to chance: the cut may stand within a comment or a text.
bool begins_with(std::string_view answer, std::string_view shown) {
  auto part = shown.size() - shown.size() / 10;
  return part >= least_beginning && answer.substr(0, part) == shown.substr(0, part);
}

std::string baseline_of(const task& x) {
  if (x.contract == contract_kind::program) {
    std::string all; // of several files as an answer writes them
    for (const auto& file : x.program.baseline) all += file.text + "\n";
    return all;
  }
  auto path = device_file(x, "baseline");
  return read_in_folder(x.directory, x.terms.backend == "cpu" ? "baseline.cpp"
                                                              : path.substr(path.rfind('/') + 1))
      .value_or("");
}

} // namespace

shown_code::shown_code(const task& x, std::string_view prompt)
    : python_(x.contract == contract_kind::torch || x.program.answer_file.ends_with(".py")),
      device_(!python_ && x.terms.contract == contract_kind::device),
      function_(x.torch.entry.function) {
  if (x.contract == contract_kind::torch) {
    // Of what was not shown nothing can be copied.
    if (x.verb != "synthesize") add("the problem's own model", x.torch.code);
    if (!x.starter.empty()) add("the starter", x.starter);
  } else {
    add("the starter", x.starter);
    add("the baseline", baseline_of(x));
  }
  add_blocks("an example of the prompt", prompt);
}

void shown_code::show(std::string_view text) {
  add_blocks("what a tool found", text);
}

void shown_code::add_blocks(const char* what, std::string_view text) {
  for (const auto& shown : fenced_blocks(text)) {
    add(what, shown.code);
    if (shown.is_cut)
      blocks_.back().beginning =
          python_ ? normalized_python(shown.code) : normalized_cpp(shown.code);
  }
}

void shown_code::add(const char* what, std::string_view code) {
  if (python_)
    blocks_.push_back({what, {}, sayable(normalized_python(code), function_), {}});
  else if (device_)
    blocks_.push_back(
        {what, launches_of(std::string{code}), gpu_parts_of(normalized_cpp(code)).definitions, {}});
  else
    blocks_.push_back({what, normalized_cpp(code), {}, {}});
}

// Code put together from several texts that were shown is nothing new either.
std::string shown_code::copied_module(const std::string& normalized) const {
  auto parts = statements(normalized);
  for (const auto& x : blocks_)
    if (is_made_of(parts, function_,
                   [&](const std::string& one) { return x.statements.contains(one); }))
      return x.what;
  auto is_anywhere = [&](const std::string& one) {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [&](const block& x) { return x.statements.contains(one); });
  };
  return is_made_of(parts, function_, is_anywhere) ? "what was shown" : "";
}

std::string shown_code::copied_in(std::string_view answer) const {
  if (answer.size() > most_code) return {};
  auto normalized = python_ ? normalized_python(answer) : normalized_cpp(answer);
  if (normalized.empty()) return {};
  for (const auto& x : blocks_)
    if (begins_with(normalized, x.beginning)) return x.what;
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
  if (python_) return copied_module(normalized);
  for (const auto& x : blocks_)
    if (x.cpp == normalized) return x.what;
  return {};
}

std::string copied_from(const task& x, std::string_view prompt, std::string_view answer) {
  return shown_code{x, prompt}.copied_in(answer);
}

} // namespace kernelmill
