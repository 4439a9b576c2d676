#include "launch/commands/view/candidate_tree.hpp"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t most_indent = 60; // a line of candidates may be long, a line on a screen is not

// Records of others may hold a line of thousands, so nothing here recurses.
struct open_branch {
  const json* candidate;
  std::string indent;
  bool last;
};

} // namespace

std::string candidate_text(const json& x) {
  auto result = cell(x, "id") + " " + cell(x, "role");
  auto add = [&](const std::string& word) { result += ", " + word; };
  auto status = x.value("status", "");
  if (status.empty())
    add("not tried");
  else if (status != x.value("role", ""))
    add(one_line(status));
  if (x["speedup"].is_object())
    add(fmt::format("speedup {} [{}, {}]", number_cell(x["speedup"], "estimate"),
                    number_cell(x["speedup"], "low"), number_cell(x["speedup"], "high")));
  if (!x.value("patch_kind", "").empty()) add(cell(x, "patch_kind"));
  for (const char* flag : {"best", "dominated", "active"})
    if (x.value(flag, false)) add(flag);
  if (auto choice = x.find("choice"); choice != x.end() && choice->is_object())
    add(cell(*choice, "status") + " by a person");
  result += fmt::format("  t{}", x["turn"].get<uint64_t>());
  if (!x.value("tool", "").empty()) result += " " + cell(x, "tool");
  auto sha = x.value("sha256", "");
  if (!sha.empty()) result += "  " + one_line(sha.substr(0, 12));
  if (!x.value("summary", "").empty()) result += "  " + one_line(x.value("summary", ""), 80);
  return result;
}

std::string candidate_tree(const json& document) {
  auto found = document.find("candidates");
  if (found == document.end() || found->empty()) return {};
  std::map<std::string, std::vector<const json*>> children;
  for (const auto& x : *found) children[x["parent"].get<std::string>()].push_back(&x);
  std::vector<open_branch> open;
  auto push = [&](const std::string& of, const std::string& indent) {
    auto below = children.find(of);
    if (below == children.end()) return;
    const auto& all = below->second;
    for (size_t i = all.size(); i > 0; --i) open.push_back({all[i - 1], indent, i == all.size()});
  };
  std::string result = "candidates\n";
  push("", "");
  while (!open.empty()) {
    auto x = open.back();
    open.pop_back();
    result += x.indent + (x.last ? "└─ " : "├─ ") + candidate_text(*x.candidate) + "\n";
    // Each candidate stands below the one that it was made from.
    auto id = (*x.candidate)["id"].get<std::string>();
    auto indent = x.indent;
    if (indent.size() < most_indent) indent += x.last ? "   " : "│  ";
    push(id, indent);
  }
  for (const auto& problem : document.value("problems", json::array()))
    result += "problem: " + one_line(problem.get<std::string>()) + "\n";
  return result;
}

} // namespace kernelmill::commands
