#include "retrieval/code/reference_code.hpp"

#include <algorithm>
#include <set>

#include "retrieval/code/operator_table.hpp"
#include "retrieval/code/python_text.hpp"
#include "retrieval/code/trace.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_words = 600; // of a text that was not recognized
constexpr size_t most_shown = 400; // operators of a large network repeat

bool reads_as_torch(std::string_view code) {
  return code.find("def ") != code.npos || code.find("lambda") != code.npos;
}

std::string signature_text(const program_trace& x, bool all) {
  std::string result;
  for (const auto& one : x.operators) {
    if (!all && only_arranges(one.name)) continue;
    if (!result.empty()) result += "; ";
    result += one.name;
    if (!one.parameters.empty()) result += " " + one.parameters;
  }
  return result;
}

/// Names and numbers as they come: what a C declaration, or code of no known shape, gives.
std::string plain_words(std::string_view code) {
  std::string result;
  size_t count = 0;
  for (const auto& token : read_python(code.substr(0, 256 << 10)).tokens) {
    if (token.kind == python_kind::mark || token.kind == python_kind::text) continue;
    if (token.text.size() < 2 || ++count > most_words) continue;
    if (!result.empty()) result += ' ';
    result += token.text;
  }
  return result;
}

std::string words_of_trace(const program_trace& x) {
  std::string result;
  auto add = [&](std::string_view word) {
    if (!result.empty()) result += ' ';
    result += word;
  };
  for (size_t i = 0; i < std::min(x.operators.size(), most_shown); ++i) {
    const auto& one = x.operators[i];
    add(one.name);
    if (!one.parameters.empty()) add(one.parameters);
  }
  std::set<std::string> layers;
  for (const auto& one : x.operators)
    if (!one.sizes.empty() && layers.size() < 16 && layers.insert(one.name + one.sizes).second)
      add("\n" + one.name + one.sizes);
  for (const auto& input : x.inputs) add("\nshape " + input.shape);
  return result;
}

std::string_view dtype_of(std::string_view code) {
  for (std::string_view x : {"float16", "bfloat16", "float64", "int8", "float8", "half()"})
    if (code.find(x) != code.npos) return x;
  return {};
}

} // namespace

reference_code read_reference(std::string_view code) {
  reference_code result;
  if (reads_as_torch(code)) {
    auto trace = trace_program(code);
    for (const auto& x : trace.operators) result.operators.push_back(x.name);
    if (!trace.operators.empty()) {
      result.words = words_of_trace(trace);
      if (auto type = dtype_of(code); !type.empty()) result.words.append(" ").append(type);
      if (!trace.strange) {
        result.signature = signature_text(trace, false);
        if (result.signature.empty()) result.signature = signature_text(trace, true);
      }
    }
  }
  if (result.words.empty()) result.words = plain_words(code);
  return result;
}

bool same_computation(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return false;
  size_t i = 0, j = 0;
  auto skip = [](std::string_view x, size_t& at) {
    while (at < x.size() && x[at] != ' ' && x[at] != ';') ++at;
  };
  while (i < a.size() && j < b.size()) {
    bool open =
        (a[i] == '?' || b[j] == '?') && i > 0 && a[i - 1] == '=' && j > 0 && b[j - 1] == '=';
    if (open) {
      skip(a, i);
      skip(b, j);
    } else if (a[i++] != b[j++]) {
      return false;
    }
  }
  return i == a.size() && j == b.size();
}

bool is_torch_code(std::string_view code) {
  return code.find("def ") != code.npos && code.find("torch") != code.npos;
}

std::vector<std::string_view> operators_of(std::string_view signature) {
  std::vector<std::string_view> result;
  while (!signature.empty()) {
    auto end = std::min(signature.find("; "), signature.size());
    result.push_back(signature.substr(0, end));
    signature.remove_prefix(std::min(end + 2, signature.size()));
  }
  std::sort(result.begin(), result.end());
  return result;
}

} // namespace kernelmill
