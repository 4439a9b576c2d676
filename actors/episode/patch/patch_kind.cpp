#include "actors/episode/patch/patch_kind.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/episode/patch/normalized.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_code = 1 << 20;

using pieces = std::vector<std::string>;

bool is_word(char c) {
  auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool is_name(std::string_view token) {
  return !token.empty() && is_word(token[0]) && !(token[0] >= '0' && token[0] <= '9');
}

size_t end_of_string(std::string_view text, size_t at) {
  if (at > 0 && text[at] == '"' && text[at - 1] == 'R') {
    auto open = text.find('(', at);
    if (open == text.npos) return text.size();
    auto close = ")" + std::string{text.substr(at + 1, open - at - 1)} + "\"";
    auto found = text.find(close, open);
    return found == text.npos ? text.size() : found + close.size();
  }
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == text[at])
      return i + 1;
  }
  return text.size();
}

// Of normalized code: words, literals and single signs; "\n" and "\t" are tokens, too.
std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t i = 0; i < text.size();) {
    auto end = i + 1;
    if (is_word(text[i])) {
      bool number = !is_name(text.substr(i, 1));
      while (end < text.size() && (is_word(text[end]) || (number && text[end] == '\''))) ++end;
    } else if (text[i] == '"' || text[i] == '\'') {
      end = end_of_string(text, i);
    }
    if (text[i] != ' ') result.push_back(text.substr(i, end - i));
    i = end;
  }
  return result;
}

std::set<std::string_view> names_of(const std::vector<std::string_view>& tokens) {
  std::set<std::string_view> result;
  for (auto x : tokens)
    if (is_name(x)) result.insert(x);
  return result;
}

// -- pieces ---------------------------------------------------------------------------------------

// Statements, heads, braces and directives of C++; with `whole`, only where nothing is open, so
// that a piece is a definition.
pieces pieces_of_cpp(std::string_view text, bool whole) {
  pieces result{""};
  int depth = 0, braces = 0;
  bool directive = false;
  auto cut = [&] {
    if (!result.back().empty()) result.emplace_back();
  };
  for (auto x : tokens_of(text)) {
    if (x == "\n") {
      cut();
      directive = false;
      continue;
    }
    directive = directive || (x == "#" && result.back().empty());
    depth += x == "(" || x == "[" ? 1 : x == ")" || x == "]" ? -1 : 0;
    bool brace = !directive && depth <= 0 && (x == "{" || x == "}");
    if (brace && !whole) cut();
    braces += brace ? (x == "{" ? 1 : -1) : 0;
    auto& last = result.back();
    if (!last.empty() && is_word(last.back()) && is_word(x[0])) last += ' ';
    last += x;
    bool ends = !directive && depth <= 0 && (brace || x == ";");
    if (ends && (!whole || (braces <= 0 && x != "{"))) cut();
  }
  if (result.back().empty()) result.pop_back();
  return result;
}

pieces pieces_of_python(std::string_view normalized, bool whole) {
  pieces result;
  bool decorated = false;
  while (!normalized.empty()) {
    auto line = normalized.substr(0, std::min(normalized.find('\n'), normalized.size() - 1) + 1);
    normalized.remove_prefix(line.size());
    if (line.ends_with('\n')) line.remove_suffix(1);
    bool joins = whole && !result.empty() && (line.starts_with('\t') || decorated);
    decorated = line.starts_with('@');
    if (joins)
      result.back() += "\n" + std::string{line};
    else
      result.emplace_back(line);
  }
  return result;
}

// -- instrumentation ------------------------------------------------------------------------------

template <size_t N>
bool begins_with_one(std::string_view text, const std::array<std::string_view, N>& heads) {
  return std::any_of(heads.begin(), heads.end(), [&](auto x) { return text.starts_with(x); });
}

constexpr std::array<std::string_view, 19> watching_cpp{"printf(",
                                                        "std::printf(",
                                                        "fprintf(stderr",
                                                        "std::fprintf(stderr",
                                                        "puts(",
                                                        "assert(",
                                                        "static_assert(",
                                                        "std::cerr<<",
                                                        "std::cout<<",
                                                        "std::clog<<",
                                                        "__assert_fail(",
                                                        "#include<cstdio>",
                                                        "#include<stdio.h>",
                                                        "#include<cassert>",
                                                        "#include<assert.h>",
                                                        "#include<iostream>",
                                                        "#include<chrono>",
                                                        "fflush(",
                                                        "std::fflush("};

constexpr std::array<std::string_view, 11> watching_python{
    "print(",           "assert ",          "assert(",           "logging.",
    "tl.device_print(", "tl.static_print(", "tl.device_assert(", "tl.static_assert(",
    "import time",      "import logging",   "from time import"};

constexpr std::array<std::string_view, 7> harmless_calls{
    "clock", "clock64", "atomicAdd", "now", "perf_counter", "perf_counter_ns", "time"};

// Whether a statement writes nothing but a name of `own`: counts, or reads a clock. An index into
// anything else, or a call of another function, could do work.
bool counts(std::string_view statement, const std::set<std::string_view>& own) {
  auto tokens = tokens_of(statement);
  bool writes_own = false, has_sign = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto x = tokens[i];
    if (x == "(" && i > 0 && is_name(tokens[i - 1]) &&
        std::find(harmless_calls.begin(), harmless_calls.end(), tokens[i - 1]) ==
            harmless_calls.end())
      return false;
    if ((x == "=" || x == "+" || x == "(" || x == ";") && !has_sign) {
      has_sign = true; // what stands before it is written, or behind "++" and "atomicAdd(&"
      auto at = i > 0 && own.contains(tokens[i - 1]) ? i - 1 : i + 1;
      while (at < tokens.size() && (tokens[at] == "+" || tokens[at] == "&")) ++at;
      writes_own = at < tokens.size() && own.contains(tokens[at]);
    }
  }
  return writes_own && tokens.size() <= 24;
}

// Behind "if(...)", if all of a piece hangs on one.
std::string_view behind_condition(std::string_view piece) {
  if (!piece.starts_with("if(")) return piece;
  int depth = 0;
  for (size_t i = 2; i < piece.size(); ++i) {
    depth += piece[i] == '(' ? 1 : piece[i] == ')' ? -1 : 0;
    if (depth == 0) return piece.substr(i + 1);
  }
  return piece;
}

pieces without_instrumentation_cpp(const pieces& all, const std::set<std::string_view>& own) {
  pieces result;
  for (const auto& x : all) {
    auto what = behind_condition(x);
    if (begins_with_one(what, watching_cpp) || (!what.empty() && counts(what, own))) continue;
    result.push_back(x);
    auto n = result.size();
    if (x == "}" && n >= 3 && result[n - 2] == "{" && result[n - 3].starts_with("if(") &&
        behind_condition(result[n - 3]).empty())
      result.resize(n - 3);
  }
  return result;
}

size_t depth_of(const std::string& line) {
  return std::min(line.find_first_not_of('\t'), line.size());
}

pieces without_instrumentation_python(const pieces& all, const std::set<std::string_view>& own) {
  pieces result; // from the last line to the first
  for (auto line = all.rbegin(); line != all.rend(); ++line) {
    auto depth = depth_of(*line);
    auto what = std::string_view{*line}.substr(depth);
    bool conditional = what.starts_with("if ") || what.starts_with("if(");
    if (conditional && what.ends_with(':') && (result.empty() || depth_of(result.back()) <= depth))
      continue; // its body is gone
    auto colon = what.rfind(':');
    if (conditional && colon != what.npos) what = what.substr(colon + 1);
    if (begins_with_one(what, watching_python) || (!what.empty() && counts(what, own))) continue;
    result.push_back(*line);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

bool only_watches(const std::string& before, const std::string& after, bool python) {
  auto tokens_before = tokens_of(before), tokens_after = tokens_of(after);
  auto names_before = names_of(tokens_before), names_after = names_of(tokens_after);
  std::set<std::string_view> own; // what only one of the texts knows, the other cannot read
  std::set_symmetric_difference(names_before.begin(), names_before.end(), names_after.begin(),
                                names_after.end(), std::inserter(own, own.end()));
  auto stripped = [&](const std::string& x) {
    return python ? without_instrumentation_python(pieces_of_python(x, false), own)
                  : without_instrumentation_cpp(pieces_of_cpp(x, false), own);
  };
  return stripped(before) == stripped(after);
}

// -- refactoring ----------------------------------------------------------------------------------

// A word with which a type ends, or that stands before a name that is declared.
bool ends_type(std::string_view x) {
  static const std::set<std::string_view> no_type{
      "return", "else",     "case",   "goto",      "new",      "delete",    "throw",
      "sizeof", "operator", "using",  "namespace", "typename", "co_return", "include",
      "if",     "ifdef",    "ifndef", "undef",     "not",      "and",       "or"};
  return is_name(x) && !no_type.contains(x);
}

bool may_be_declared(std::string_view x) {
  static const std::set<std::string_view> taken{
      "bool",   "char",     "short",   "int",     "long",   "unsigned",  "signed", "float",
      "double", "half",     "half2",   "float2",  "float4", "int2",      "int4",   "uint2",
      "uint4",  "size_t",   "void",    "auto",    "const",  "constexpr", "static", "inline",
      "extern", "volatile", "struct",  "class",   "this",   "main",      "self",   "solve",
      "Model",  "ModelNew", "forward", "operator"};
  return is_name(x) && !x.starts_with("__") && !x.ends_with("_t") && !taken.contains(x);
}

std::set<std::string_view> declared_in_cpp(const std::vector<std::string_view>& tokens) {
  std::set<std::string_view> result;
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (!may_be_declared(tokens[i])) continue;
    auto before = tokens[i - 1], after = tokens[i + 1];
    // "sum * expf(x)" declares no expf, and "a * b, c" no b that a library would own.
    bool points = (before == "*" || before == "&") && i > 1 && ends_type(tokens[i - 2]) &&
                  (after == "=" || after == ";" || after == "," || after == ")");
    bool follows = std::string_view{"=;,)([{:"}.find(after[0]) != std::string::npos;
    if (points || (ends_type(before) && (follows || before == "define"))) result.insert(tokens[i]);
  }
  return result;
}

std::set<std::string_view> declared_in_python(const std::vector<std::string_view>& tokens) {
  std::set<std::string_view> result;
  int depth = 0;
  bool head = false; // of a function, whose parameters are names of its own
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    auto x = tokens[i], after = tokens[i + 1];
    auto before = i > 0 ? tokens[i - 1] : "\n";
    depth += x == "(" || x == "[" || x == "{" ? 1 : x == ")" || x == "]" || x == "}" ? -1 : 0;
    if (x == "def") head = true;
    if (x == "\n") head = false;
    if (!may_be_declared(x)) continue;
    bool assigned = depth == 0 && (before == "\n" || before == "\t") && after == "=" &&
                    i + 2 < tokens.size() && tokens[i + 2] != "=";
    bool named = before == "def" || before == "class" || before == "for" || before == "as";
    bool parameter = head && depth == 1 && (before == "(" || before == ",");
    if (assigned || named || parameter) result.insert(x);
  }
  return result;
}

bool is_renamed(const std::string& before, const std::string& after, bool python) {
  auto a = tokens_of(before), b = tokens_of(after);
  if (a.size() != b.size()) return false;
  auto declared = python ? declared_in_python : declared_in_cpp;
  auto own_a = declared(a), own_b = declared(b);
  std::map<std::string_view, std::string_view> to, from;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && (!own_a.contains(a[i]) || !own_b.contains(b[i]))) return false;
    if (!is_name(a[i])) continue;
    if (to.emplace(a[i], b[i]).first->second != b[i]) return false;
    if (from.emplace(b[i], a[i]).first->second != a[i]) return false;
  }
  return true;
}

bool is_reordered(const std::string& before, const std::string& after, bool python) {
  auto a = python ? pieces_of_python(before, true) : pieces_of_cpp(before, true);
  auto b = python ? pieces_of_python(after, true) : pieces_of_cpp(after, true);
  // Directives say what the lines between them mean.
  auto directives = [](const pieces& all) {
    pieces result;
    std::copy_if(all.begin(), all.end(), std::back_inserter(result),
                 [](const auto& x) { return x.starts_with('#'); });
    return result;
  };
  if (directives(a) != directives(b)) return false;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

} // namespace

text_change text_change_of(std::string_view before, std::string_view after,
                           source_language language) {
  if (before == after) return text_change::none;
  if (std::max(before.size(), after.size()) > most_code) return text_change::other;
  bool python = language == source_language::python;
  auto a = python ? normalized_python(before) : normalized_cpp(before);
  auto b = python ? normalized_python(after) : normalized_cpp(after);
  if (a == b) return text_change::none;
  if (only_watches(a, b, python)) return text_change::instrumentation;
  if (is_renamed(a, b, python) || is_reordered(a, b, python)) return text_change::refactor;
  return text_change::other;
}

const char* patch_kind_of(text_change change, std::optional<bool> was_right,
                          std::optional<bool> is_right) {
  if (change == text_change::none) return "no_op";
  if (was_right == false && is_right == true) return "bug_fix";
  if (change == text_change::instrumentation) return "instrumentation";
  if (change == text_change::refactor) return "refactor";
  return was_right == true ? "perf_transform" : "";
}

} // namespace kernelmill
