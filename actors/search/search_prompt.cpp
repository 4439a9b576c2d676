#include "actors/search/search_prompt.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "actors/episode/prompt_parts.hpp"
#include "actors/search/strategy.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::search {

namespace {

constexpr size_t max_parent_text = 64 << 10;
constexpr size_t max_reason = 300;

std::string speedup_text(const node& x) {
  if (x.state == node_state::lost) return "not judged";
  if (x.state == node_state::failed) return "failed";
  if (x.low <= 0) return "right, not timed";
  return fmt::format("{:.3g}x (95 %: {:.3g} to {:.3g})", x.estimate, x.low, x.high);
}

// The first line behind the outcome and the gates.
std::string reason_of(const searched_episode& x) {
  std::string_view rest{x.report};
  next_line(rest);
  if (rest.starts_with("Gates:")) next_line(rest);
  auto line = trimmed(next_line(rest));
  if (line.ends_with(':')) { // a label; what it is of stands below
    std::string result{line};
    return result.append(" ").append(trimmed(next_line(rest)).substr(0, max_reason));
  }
  return std::string{line.substr(0, max_reason)};
}

std::vector<node> nodes_of(std::span<const searched_episode> tried) {
  std::vector<node> result;
  for (const auto& x : tried) result.push_back(x.what);
  return result;
}

/// The fastest half, and the latest of the others; in the order in which they were made.
std::vector<uint32_t> for_ledger(std::span<const searched_episode> tried, uint32_t count) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < tried.size(); ++i)
    if (tried[i].what.state != node_state::lost) order.push_back(i);
  if (order.size() <= count) return order;
  auto rank = [&](uint32_t i) {
    return tried[i].what.state == node_state::verified ? 1 + tried[i].what.low : 0;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return rank(a) > rank(b); });
  auto fast = order.begin() + count / 2;
  std::sort(fast, order.end(), std::greater<>{});
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

std::string row_text(const searched_episode& x) {
  auto result = "- " + x.name;
  result += x.parent.empty() ? ", new" : ", from " + x.parent;
  result += ": " + speedup_text(x.what);
  if (x.what.state == node_state::failed) result += " (" + x.category + ")";
  if (!x.idea.empty()) result += ". Idea: " + x.idea;
  return result + "\n";
}

std::string ledger_text(std::span<const searched_episode> tried, const prompt_limits& limits) {
  auto nodes = nodes_of(tried);
  auto verified = std::count_if(nodes.begin(), nodes.end(),
                                [](const node& x) { return x.state == node_state::verified; });
  auto result = fmt::format("\n## What was tried before\n{} kernels were tried for this task; {} "
                            "are right.",
                            tried.size(), verified);
  if (auto best = best_of(nodes); best && nodes[*best].low > 0)
    result += fmt::format(" The fastest is {}: {}.", tried[*best].name, speedup_text(nodes[*best]));
  result += "\n";
  for (auto i : for_ledger(tried, limits.ledger)) result += row_text(tried[i]);
  return result;
}

std::string failed_siblings_text(std::span<const searched_episode> tried, uint32_t parent,
                                 uint32_t count) {
  std::string result;
  for (size_t i = tried.size(); i-- > 0 && count > 0;) {
    const auto& x = tried[i];
    if (x.what.parent != parent || x.what.state != node_state::failed) continue;
    if (result.empty()) result = "\nChanges to it that failed:\n";
    result += "- " + x.name + " (" + x.category + ")";
    if (!x.idea.empty()) result += ", idea: " + x.idea;
    if (auto reason = reason_of(x); !reason.empty()) result += "\n  " + reason;
    result += '\n';
    --count;
  }
  return result;
}

std::string parent_text(std::span<const searched_episode> tried, uint32_t parent,
                        const prompt_limits& limits) {
  const auto& x = tried[parent];
  bool right = x.what.state == node_state::verified;
  auto result = fmt::format("\n## The kernel to {}: {}\n", right ? "improve" : "mend", x.name);
  append_fenced(result, x.source, x.language.empty() ? "cpp" : x.language, max_parent_text);
  result += "What became of it:\n" + x.report;
  if (!result.ends_with('\n')) result += '\n';
  result += failed_siblings_text(tried, parent, limits.failed_siblings);
  result += right ? "\nWrite a kernel that is right and faster than this one. Change what costs it "
                    "the most time; do not repeat what failed. A copy earns nothing.\n"
                  : "\nFind out why it failed, and write a kernel that is right.\n";
  if (limits.patches)
    result += "Your first answer may be a change to this one, between <PATCH> and </PATCH>.\n";
  return result;
}

} // namespace

std::string search_prompt(std::span<const searched_episode> tried, std::optional<uint32_t> parent,
                          const prompt_limits& limits) {
  if (tried.empty()) return {};
  auto result = ledger_text(tried, limits);
  if (parent) return result += parent_text(tried, *parent, limits);
  return result += "\nTake another way than these.\n";
}

} // namespace kernelmill::search
