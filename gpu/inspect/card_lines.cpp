#include "gpu/inspect/card_lines.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <utility>

#include "gpu/inspect/listing_parts.hpp"
#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_card_lines = 6;
constexpr size_t longest_source = 120;

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> subjects{
    {{"register_spills", "local memory"},
     {"fp64", "double precision"},
     {"atomics", "atomics"},
     {"no_overlap", "barriers"},
     {"bank_conflicts", "shared memory"},
     {"uncoalesced_access", "global memory"}}};

bool starts_with_one_of(std::string_view x, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(), [&](auto prefix) { return x.starts_with(prefix); });
}

bool holds(std::string_view x, std::string_view part) {
  return x.find(part) != x.npos;
}

bool is_of_sass(std::string_view opcode, std::string_view subject) {
  if (subject == "local memory") return starts_with_one_of(opcode, {"LDL", "STL"});
  if (subject == "double precision")
    return starts_with_one_of(opcode, {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"}) ||
           holds(opcode, ".F64") || holds(opcode, "64H");
  // REDUX adds up within a warp, without memory.
  if (subject == "atomics")
    return starts_with_one_of(opcode, {"ATOM", "RED"}) && !opcode.starts_with("REDUX");
  if (subject == "barriers") return opcode == "BAR" || opcode.starts_with("BAR.");
  if (subject == "shared memory")
    return starts_with_one_of(opcode, {"LDS", "STS", "ATOMS", "LDGSTS"});
  return starts_with_one_of(opcode, {"LDG", "STG", "LD.", "ST."});
}

bool is_of_ptx(std::string_view opcode, std::string_view subject) {
  bool moves = starts_with_one_of(opcode, {"ld", "st", "mov", "cvta"});
  bool accesses = starts_with_one_of(opcode, {"ld", "st", "cp."});
  if (subject == "local memory") return accesses && holds(opcode, ".local");
  if (subject == "double precision") return !moves && holds(opcode, ".f64");
  if (subject == "atomics") return starts_with_one_of(opcode, {"atom.", "red."});
  if (subject == "barriers") return starts_with_one_of(opcode, {"bar.", "barrier."});
  if (subject == "shared memory")
    return (accesses || opcode.starts_with("atom.")) && holds(opcode, ".shared");
  return accesses && holds(opcode, ".global");
}

bool does(std::string_view text, std::string_view subject) {
  auto opcode = listing_parts::opcode_of(text);
  if (opcode.empty()) return false;
  bool capital = opcode[0] >= 'A' && opcode[0] <= 'Z';
  return capital ? is_of_sass(opcode, subject) : is_of_ptx(opcode, subject);
}

// "reduce" of "void reduce<(int)256>(float *)", which another tool calls "void
// reduce<256>(float*)".
// An unnamed namespace is "(anonymous namespace)::" or "<unnamed>::".
std::string bare_name(std::string_view whole) {
  std::string name{whole};
  for (std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::"})
    for (auto at = name.find(unnamed); at != name.npos; at = name.find(unnamed))
      name.erase(at, unnamed.size());
  name.resize(std::min(name.size(), name.find_first_of("<(")));
  return name.substr(name.find_last_of(' ') + 1);
}

bool has_lines(const std::vector<kernel_listing>& list) {
  return std::any_of(list.begin(), list.end(), [](const kernel_listing& x) {
    return std::any_of(x.lines.begin(), x.lines.end(),
                       [](const code_line& line) { return line.source_line > 0; });
  });
}

std::vector<std::string_view> split(std::string_view source) {
  std::vector<std::string_view> result;
  while (!source.empty()) result.push_back(next_line(source));
  return result;
}

} // namespace

std::string_view instructions_of(std::string_view bottleneck) {
  for (const auto& [kind, subject] : subjects)
    if (kind == bottleneck) return subject;
  return {};
}

std::vector<finding_line> lines_with(std::string_view instructions, const listed_text& text,
                                     std::string_view kernel) {
  std::map<uint32_t, uint32_t> counts;
  auto wanted = bare_name(kernel);
  if (wanted.empty() && !kernel.empty()) return {};
  for (const auto& x : has_lines(text.sass) ? text.sass : text.ptx) {
    if (!wanted.empty() && bare_name(x.name) != wanted) continue;
    for (const auto& line : x.lines)
      if (line.source_line > 0 && does(line.text, instructions)) ++counts[line.source_line];
  }
  auto source = split(text.source);
  std::vector<finding_line> result;
  for (auto [number, count] : counts) {
    auto words = number <= source.size() ? trimmed(source[number - 1]) : std::string_view{};
    result.push_back(
        {number, count, instructions, std::string{utf8_prefix(words, longest_source)}});
  }
  std::stable_sort(result.begin(), result.end(), [](const finding_line& a, const finding_line& b) {
    return a.instructions > b.instructions;
  });
  return result;
}

void add_lines(const std::vector<listed_text>& texts, std::string_view kernel,
               std::vector<bottleneck_finding>& findings) {
  for (auto& finding : findings) {
    auto subject = instructions_of(finding.kind);
    if (subject.empty()) continue;
    for (const auto& text : texts) {
      auto more = lines_with(subject, text, kernel);
      finding.lines.insert(finding.lines.end(), more.begin(), more.end());
    }
    if (finding.lines.size() > most_card_lines) finding.lines.resize(most_card_lines);
  }
}

} // namespace kernelmill
