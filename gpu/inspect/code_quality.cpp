#include "gpu/inspect/code_quality.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "gpu/inspect/instruction_subjects.hpp"
#include "gpu/inspect/listing_parts.hpp"
#include "gpu/inspect/loops.hpp"

namespace kernelmill {

namespace {

using listing_parts::is_label;
using listing_parts::opcode_of;

constexpr size_t most_fact_lines = 12;
constexpr size_t most_repeated = 4;
constexpr uint32_t wide_bits = 64;

constexpr std::array<std::string_view, 7> counted_subjects{
    "tensor cores",        "double precision", "barriers", "atomics",
    "asynchronous copies", "local memory",     "calls"};

std::string_view name_of(const memory_access& x) {
  switch (x.space) {
    case memory_space::global: return x.stores ? "global stores" : "global loads";
    case memory_space::shared: return x.stores ? "shared stores" : "shared loads";
    case memory_space::local: return x.stores ? "local stores" : "local loads";
  }
  return {};
}

std::vector<line_count> most_first(const std::map<uint32_t, uint32_t>& counts) {
  std::vector<line_count> result;
  for (auto [line, count] : counts)
    if (line > 0) result.push_back({line, count});
  std::stable_sort(result.begin(), result.end(), [](const line_count& a, const line_count& b) {
    return a.instructions > b.instructions;
  });
  if (result.size() > most_fact_lines) result.resize(most_fact_lines);
  return result;
}

counted_code count_of(const kernel_listing& x, std::string_view subject) {
  counted_code result{subject, 0, {}};
  std::map<uint32_t, uint32_t> lines;
  for (const auto& line : x.lines)
    if (is_about(line.text, subject)) {
      ++result.instructions;
      ++lines[line.source_line];
    }
  result.lines = most_first(lines);
  return result;
}

std::vector<counted_accesses> accesses_in(const kernel_listing& x) {
  std::vector<counted_accesses> result;
  for (auto space : {memory_space::global, memory_space::shared, memory_space::local})
    for (bool stores : {false, true}) {
      counted_accesses one;
      one.what = name_of({space, stores, 0});
      std::map<uint32_t, uint32_t> lines;
      for (const auto& line : x.lines) {
        auto access = access_of(line.text);
        if (!access || access->space != space || access->stores != stores) continue;
        ++one.instructions;
        ++one.by_bits[access->bits];
        ++lines[line.source_line];
      }
      one.lines = most_first(lines);
      if (one.instructions > 0) result.push_back(std::move(one));
    }
  return result;
}

// What it says of unrolling that an instruction stands there more than once: addresses and moves
// are made anew for many reasons.
bool counts_as_work(std::string_view instruction) {
  if (access_of(instruction) || is_about(instruction, "tensor cores")) return true;
  auto opcode = opcode_of(instruction);
  for (std::string_view name : {"FFMA", "FADD", "FMUL", "DFMA", "DADD", "DMUL", "fma.", "v_fma",
                                "v_mac_f", "v_add_f", "v_mul_f", "add.f", "mul.f"})
    if (opcode.starts_with(name)) return true;
  return false;
}

std::vector<repeated_code> repeated_in(const kernel_listing& x, const std::vector<size_t>& body,
                                       const std::vector<bool>& inner) {
  std::map<std::pair<uint32_t, std::string>, uint32_t> counts;
  for (auto at : body) {
    const auto& line = x.lines[at];
    if (inner[at] || line.source_line == 0 || !counts_as_work(line.text)) continue;
    ++counts[{line.source_line, std::string{opcode_of(line.text)}}];
  }
  std::vector<repeated_code> result;
  for (const auto& [what, times] : counts)
    if (times > 1) result.push_back({what.first, what.second, times});
  std::stable_sort(
      result.begin(), result.end(),
      [](const repeated_code& a, const repeated_code& b) { return a.times > b.times; });
  if (result.size() > most_repeated) result.resize(most_repeated);
  return result;
}

loop_facts facts_of(const kernel_listing& x, const code_loop& loop,
                    const std::vector<code_loop>& all) {
  loop_facts result;
  result.depth = loop.depth;
  for (auto at : loop.body) {
    const auto& line = x.lines[at];
    if (is_label(line.text)) continue;
    ++result.instructions;
    result.barriers += is_about(line.text, "barriers");
    if (line.source_line == 0) continue;
    if (result.first_line == 0) result.first_line = line.source_line;
    result.first_line = std::min(result.first_line, line.source_line);
    result.last_line = std::max(result.last_line, line.source_line);
  }
  std::vector<bool> inner(x.lines.size(), false);
  for (const auto& other : all)
    if (other.head != loop.head &&
        std::binary_search(loop.body.begin(), loop.body.end(), other.head))
      for (auto at : other.body) inner[at] = true;
  result.repeated = repeated_in(x, loop.body, inner);
  return result;
}

std::optional<live_peak> peak_of(const kernel_listing& x) {
  std::optional<live_peak> result;
  for (const auto& line : x.lines)
    if (line.live && (!result || *line.live > result->registers))
      result = live_peak{*line.live, line.source_line};
  return result;
}

// "f(float const*, int)". A name in the list that is not of a built-in type could hold anything.
std::optional<bool> double_parameters(std::string_view name) {
  static const std::set<std::string_view> built_in{
      "float",  "int",  "unsigned", "long",  "short", "char",          "signed",   "bool",
      "const",  "void", "__half",   "half",  "half2", "__half2",       "restrict", "float2",
      "float4", "int2", "int4",     "uint2", "uint4", "__nv_bfloat16", "volatile"};
  auto open = name.rfind('(');
  if (!name.ends_with(')') || open == name.npos) return std::nullopt;
  // A pointer to a function has parentheses of its own.
  for (std::string_view unnamed = "(anonymous namespace)::"; name.starts_with(unnamed);) {
    name.remove_prefix(unnamed.size());
    open -= unnamed.size();
  }
  if (name.find(')') != name.size() - 1) return std::nullopt;
  bool known = true;
  auto list = name.substr(open + 1);
  while (!list.empty()) {
    auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    auto begin = std::find_if(list.begin(), list.end(), is_part);
    auto end = std::find_if_not(begin, list.end(), is_part);
    std::string_view word{begin, end};
    if (word == "double" || word == "double2" || word == "double4") return true;
    known = known && (word.empty() || built_in.contains(word));
    list = {end, list.end()};
  }
  return known ? std::optional{false} : std::nullopt;
}

} // namespace

double counted_accesses::wide_share() const {
  uint32_t wide = 0;
  for (auto [bits, count] : by_bits)
    if (bits >= wide_bits) wide += count;
  return static_cast<double>(wide) / instructions;
}

code_quality quality_of(const kernel_listing& x) {
  code_quality result;
  result.name = x.name;
  result.mix = instruction_mix(x);
  for (const auto& [name, count] : result.mix) result.instructions += count;
  result.accesses = accesses_in(x);
  for (auto subject : counted_subjects) result.kinds.push_back(count_of(x, subject));
  if (auto loops = loops_of(x)) {
    result.loops.emplace();
    for (const auto& loop : *loops) result.loops->push_back(facts_of(x, loop, *loops));
  }
  result.live = peak_of(x);
  result.takes_doubles = double_parameters(x.name);
  return result;
}

} // namespace kernelmill
