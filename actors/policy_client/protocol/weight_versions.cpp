#include "actors/policy_client/protocol/weight_versions.hpp"

#include <algorithm>
#include <limits>

#include "actors/policy_client/protocol/json_view.hpp"

namespace kernelmill {

namespace {

constexpr size_t longest_version = 200;
constexpr size_t most_spans = 4096;
constexpr auto no_end = std::numeric_limits<uint32_t>::max();

std::string printable_version(std::string_view text) {
  std::string result;
  for (unsigned char c : text.substr(0, longest_version))
    result.push_back(c >= ' ' && c < 0x7f ? static_cast<char>(c) : '?');
  return result;
}

// Versions are texts, numbers in some servers.
std::string version_of(const json_found& x) {
  if (auto number = as<int64_t>(x)) return std::to_string(*number);
  return printable_version(as<std::string_view>(x).value_or(std::string_view{}));
}

uint32_t bound_of(const json_found& x, uint32_t fallback) {
  auto value = as<int64_t>(x);
  if (!value || *value < 0) return fallback;
  return static_cast<uint32_t>(std::min<int64_t>(*value, no_end));
}

} // namespace

void read_weight_versions(std::vector<weight_span>& to, const json_found& object) {
  if (auto list = list_in(member(object, "weight_versions"))) {
    std::vector<weight_span> spans;
    for (auto x : *list) {
      if (spans.size() >= most_spans) break;
      weight_span span{version_of(member(x, "version")), bound_of(member(x, "start"), 0),
                       bound_of(member(x, "end"), no_end)};
      if (!span.version.empty()) spans.push_back(std::move(span));
    }
    if (!spans.empty()) to = std::move(spans);
    return;
  }
  if (auto version = version_of(member(object, "weight_version")); !version.empty())
    to = {{version, 0, no_end}};
}

void add_weight_version(std::vector<weight_span>& to, std::string_view version) {
  if (auto text = printable_version(version); !text.empty()) to = {{text, 0, no_end}};
}

void settle_weight_versions(std::vector<weight_span>& spans, size_t tokens) {
  auto all = static_cast<uint32_t>(std::min<size_t>(tokens, no_end));
  std::stable_sort(spans.begin(), spans.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  uint32_t from = 0;
  for (auto& x : spans) {
    x.start = std::clamp(x.start, from, all);
    x.end = std::clamp(x.end, x.start, all);
    from = x.end;
  }
  // A version of no token still says what the server runs when nothing was sampled.
  if (all > 0) std::erase_if(spans, [](const auto& x) { return x.start == x.end; });
}

} // namespace kernelmill
