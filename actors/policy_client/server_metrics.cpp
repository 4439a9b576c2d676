#include "actors/policy_client/server_metrics.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kernelmill {

namespace {

struct figure {
  std::string_view name;
  std::optional<double> server_load::*to;
};

// vLLM renamed its cache's figure; llama.cpp dropped its own.
constexpr figure figures[] = {
    {"vllm:num_requests_running", &server_load::running},
    {"vllm:num_requests_waiting", &server_load::waiting},
    {"vllm:kv_cache_usage_perc", &server_load::cache},
    {"vllm:gpu_cache_usage_perc", &server_load::cache},
    {"sglang:num_running_reqs", &server_load::running},
    {"sglang:num_queue_reqs", &server_load::waiting},
    {"sglang:token_usage", &server_load::cache},
    {"llamacpp:requests_processing", &server_load::running},
    {"llamacpp:requests_deferred", &server_load::waiting},
    {"llamacpp:kv_cache_usage_ratio", &server_load::cache},
};

// "name{labels} value" or "name value timestamp"; a label may hold any character.
std::optional<double> value_of(std::string_view rest) {
  if (rest.starts_with('{')) {
    auto end = rest.rfind('}');
    if (end == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(end + 1);
  }
  auto first = rest.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  double value = 0;
  auto [end, status] = std::from_chars(rest.data() + first, rest.data() + rest.size(), value);
  if (status != std::errc{} || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

void take_line(server_load& to, std::string_view line) {
  auto name = line.substr(0, line.find_first_of("{ \t"));
  for (const auto& x : figures) {
    if (name != x.name) continue;
    auto value = value_of(line.substr(name.size()));
    if (!value) return;
    auto& sum = to.*x.to;
    // One line an engine: their requests add up, and the fullest cache is the first to evict.
    sum =
        x.to == &server_load::cache ? std::max(sum.value_or(0), *value) : sum.value_or(0) + *value;
    return;
  }
}

} // namespace

std::optional<server_load> parse_server_load(std::string_view text) {
  server_load result;
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    if (!line.starts_with('#')) take_line(result, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!result.running && !result.waiting && !result.cache) return std::nullopt;
  return result;
}

std::string metrics_address(const std::string& base_url) {
  auto host = base_url.find("://");
  host = host == std::string::npos ? 0 : host + 3;
  return base_url.substr(0, base_url.find('/', host)) + "/metrics";
}

} // namespace kernelmill
