// What the compiler made of a source, as files of a bundle.

#include <set>

#include "launch/judging/inspecting/parts.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::inspecting {

namespace {

using json = nlohmann::ordered_json;

bool is_label(const code_line& x) {
  return x.text.ends_with(':');
}

const kernel_listing* listing_of(const std::vector<kernel_listing>& all, const std::string& name) {
  for (const auto& x : all)
    if (x.name == name) return &x;
  return nullptr;
}

// How many instructions there are, and of how many a line of the source is known.
json coverage(const kernel_listing* x) {
  if (x == nullptr) return nullptr;
  size_t all = 0, known = 0;
  for (const auto& line : x->lines) {
    if (is_label(line)) continue;
    ++all;
    known += line.source_line > 0;
  }
  return {{"instructions", all}, {"with_line", known}};
}

// Places of a line's instructions in the listing.
json places(const kernel_listing* x, uint32_t line) {
  auto result = json::array();
  if (x != nullptr)
    for (size_t i = 0; i < x->lines.size(); ++i)
      if (x->lines[i].source_line == line && !is_label(x->lines[i])) result.push_back(i);
  return result;
}

std::vector<std::pair<const char*, code_listing>> listings_of(const inspected& x) {
  if (x.is_amd()) return {{"gcn", &inspected_code::gcn}};
  return {{"ptx", &inspected_code::ptx}, {"sass", &inspected_code::sass}};
}

// A name of a source or a kernel as a part of a file's name.
std::string plain_name(const std::string& x, std::set<std::string>& taken) {
  std::string result;
  for (char c : x.substr(0, 40)) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || (c == '.' && !result.empty());
    result += plain ? c : '_';
  }
  if (result.empty()) result = "kernel";
  for (auto first = result; !taken.insert(result).second;)
    result = first + "." + std::to_string(taken.size());
  return result;
}

} // namespace

json listing_documents(const inspected& x) {
  auto summary = json::array(), map = json::array();
  for (const auto& one : x.codes)
    for (const auto& view : one.views()) {
      json told = {{"name", view.name}, {"source_lines", 0}};
      auto lines = json::array();
      for (const auto& row : view.rows) {
        if (row.line == 0) continue;
        told["source_lines"] = told["source_lines"].get<size_t>() + 1;
        auto& at = lines.emplace_back(json{{"line", row.line}});
        for (auto [name, which] : listings_of(x))
          at[name] = places(listing_of(one.*which, view.name), row.line);
      }
      for (auto [name, which] : listings_of(x))
        told[name] = coverage(listing_of(one.*which, view.name));
      summary.push_back(named(one.code, std::move(told)));
      map.push_back(named(one.code, {{"name", view.name}, {"lines", std::move(lines)}}));
    }
  showing how{"triview"};
  json head = {{"status", "completed"}, {"architecture", x.architecture}};
  auto with = [&](const char* key, json value) {
    auto result = head;
    result[key] = std::move(value);
    return result;
  };
  auto places_are = "numbers count the lines of the kernel's listing, labels included, from 0";
  auto mapped = with("places_are", places_are);
  mapped["kernels"] = std::move(map);
  return {{"tri_view", with("kernels", document_of(x, how)["triview"])},
          {"source_map_summary", with("kernels", std::move(summary))},
          {"source_ptx_sass_map", std::move(mapped)}};
}

std::vector<std::pair<std::string, std::string>> listing_texts(const inspected& x) {
  std::vector<std::pair<std::string, std::string>> result;
  std::set<std::string> taken;
  for (const auto& one : x.codes) {
    auto name = plain_name(one.code.name, taken);
    auto add = [&](const std::string& kind, const std::string& text) {
      if (!text.empty()) result.emplace_back(name + "." + kind, text);
    };
    add("ptx", one.code.ptx);
    add("sass", one.code.sass);
    add("gcn", one.code.gcn);
    for (const auto& [stage, text] : one.code.stages) add(stage, text);
  }
  return result;
}

} // namespace kernelmill::inspecting
