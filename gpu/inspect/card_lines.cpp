#include "gpu/inspect/card_lines.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "gpu/inspect/instruction_subjects.hpp"
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

std::string bare_name(std::string_view whole) {
  std::string name{whole};
  for (std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::"})
    for (auto at = name.find(unnamed); at != name.npos; at = name.find(unnamed))
      name.erase(at, unnamed.size());
  name.resize(std::min(name.size(), name.find_first_of("<(")));
  return name.substr(name.find_last_of(' ') + 1);
}

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
  const auto& listing = has_lines(text.sass) ? text.sass : text.ptx;
  // Instances of a template have the bare name in common. Another tool may write theirs otherwise.
  bool is_listed =
      !kernel.empty() && std::any_of(listing.begin(), listing.end(),
                                     [&](const kernel_listing& x) { return x.name == kernel; });
  for (const auto& x : listing) {
    if (is_listed ? x.name != kernel : !wanted.empty() && bare_name(x.name) != wanted) continue;
    for (const auto& line : x.lines)
      if (line.source_line > 0 && is_about(line.text, instructions)) ++counts[line.source_line];
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
