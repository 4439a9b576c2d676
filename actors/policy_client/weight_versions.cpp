#include "actors/policy_client/weight_versions.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr size_t longest_version = 200;
constexpr size_t most_spans = 4096;
constexpr auto no_end = std::numeric_limits<uint32_t>::max();

// Versions are texts, numbers in some servers.
std::string version_of(const json& x) {
  if (x.is_number_integer()) return std::to_string(x.get<int64_t>());
  if (!x.is_string()) return {};
  std::string result;
  for (unsigned char c : x.get_ref<const std::string&>().substr(0, longest_version))
    result.push_back(c >= ' ' && c < 0x7f ? static_cast<char>(c) : '?');
  return result;
}

uint32_t bound_of(const json& object, const char* key, uint32_t fallback) {
  auto i = object.find(key);
  if (i == object.end() || !i->is_number_integer() || i->get<int64_t>() < 0) return fallback;
  return static_cast<uint32_t>(std::min<int64_t>(i->get<int64_t>(), no_end));
}

} // namespace

void read_weight_versions(std::vector<weight_span>& to, const json& object) {
  if (!object.is_object()) return;
  if (auto list = object.find("weight_versions"); list != object.end() && list->is_array()) {
    std::vector<weight_span> spans;
    for (const auto& x : *list) {
      if (!x.is_object() || !x.contains("version") || spans.size() >= most_spans) continue;
      weight_span span{version_of(x["version"]), bound_of(x, "start", 0),
                       bound_of(x, "end", no_end)};
      if (!span.version.empty()) spans.push_back(std::move(span));
    }
    if (!spans.empty()) to = std::move(spans);
    return;
  }
  auto one = object.find("weight_version");
  if (one == object.end()) return;
  if (auto version = version_of(*one); !version.empty()) to = {{version, 0, no_end}};
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
