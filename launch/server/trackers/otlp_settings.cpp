#include "launch/server/trackers/otlp_settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace kernelmill::trackers {

namespace {

constexpr std::string_view traces_path = "/v1/traces";
constexpr std::string_view blanks = " \t";

std::string trimmed(std::string_view x) {
  auto begin = x.find_first_not_of(blanks);
  if (begin == x.npos) return {};
  return std::string{x.substr(begin, x.find_last_not_of(blanks) - begin + 1)};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  auto low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::optional<std::string> percent_decoded(std::string_view x) {
  std::string result;
  for (size_t i = 0; i < x.size(); ++i) {
    char c = x[i];
    if (c == '%') {
      if (i + 2 >= x.size()) return std::nullopt;
      int high = hex_digit(x[i + 1]), low = hex_digit(x[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high << 4 | low);
      i += 2;
    }
    // No header may hold it.
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return std::nullopt;
    result.push_back(c);
  }
  return result;
}

bool is_name(std::string_view x) {
  return !x.empty() && std::all_of(x.begin(), x.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view{"!#$&'*+-.^_`|~/"}.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_address(const std::string& x) {
  return x.starts_with("http://") || x.starts_with("https://");
}

std::string with_path(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url.ends_with(traces_path) ? url : url + std::string{traces_path};
}

// The first of these that is set.
std::optional<std::string> first_of(const variable_reader& variable,
                                    std::initializer_list<const char*> names) {
  for (const auto* name : names)
    if (auto value = variable(name)) return value;
  return std::nullopt;
}

bool is_true(std::string x) {
  std::transform(x.begin(), x.end(), x.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return x == "true";
}

// Only where no key of ours gives an address.
void take_address(otlp_settings& to, const variable_reader& variable) {
  auto exact = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  auto base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (!exact && !base) return;
  if (variable("OTEL_TRACES_EXPORTER").value_or("otlp") == "none") return;
  auto protocol =
      first_of(variable, {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"});
  if (protocol == "grpc") {
    to.why_nothing = "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and traces go over HTTP; set "
                     "otlp.endpoint to the collector's HTTP port";
    return;
  }
  auto url = exact ? *exact : with_path(*base);
  if (is_address(url))
    to.url = url;
  else
    to.why_nothing = "OTEL_EXPORTER_OTLP_ENDPOINT begins with neither http:// nor https://";
}

void take_resource(otlp_settings& to, const std::string& service, const variable_reader& variable) {
  auto others = parse_name_values(variable("OTEL_RESOURCE_ATTRIBUTES").value_or(""));
  auto name = service.empty() ? variable("OTEL_SERVICE_NAME").value_or("") : service;
  if (!others) others.emplace();
  for (const auto& [key, value] : *others)
    if (key == "service.name" && name.empty()) name = value;
  to.resource.emplace_back("service.name", name.empty() ? "kernelmill" : name);
  for (const auto& x : *others)
    if (x.first != "service.name") to.resource.push_back(x);
}

} // namespace

std::optional<std::string> read_variable(const std::string& name) {
  const auto* value = std::getenv(name.c_str());
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

std::optional<name_values> parse_name_values(const std::string& text) {
  name_values result;
  for (std::string_view left = text; !left.empty();) {
    auto end = std::min(left.find(','), left.size());
    auto part = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (trimmed(part).empty()) continue;
    auto equals = part.find('=');
    if (equals == part.npos) return std::nullopt;
    auto name = trimmed(part.substr(0, equals));
    auto value = percent_decoded(trimmed(part.substr(equals + 1)));
    if (!is_name(name) || !value) return std::nullopt;
    result.emplace_back(std::move(name), std::move(*value));
  }
  return result;
}

expected<otlp_settings> resolve_otlp(const otlp_section& keys, const variable_reader& variable) {
  otlp_settings result;
  result.content = keys.content;
  result.share = keys.share;
  result.timeout_ms = keys.timeout_ms;
  if (!keys.headers_env.empty()) {
    auto text = variable(keys.headers_env);
    if (!text)
      return configuration_error("invalid_value",
                                 "failed to read otlp.headers_env: the variable is not set",
                                 "set it, or leave otlp.headers_env out");
    auto headers = parse_name_values(*text);
    if (!headers)
      return configuration_error("invalid_value",
                                 "failed to read the variable that otlp.headers_env names: it is "
                                 "no list of headers",
                                 "write name=value,name=value, with percent signs for blanks and "
                                 "commas within a value");
    result.headers = std::move(*headers);
  } else if (auto text = first_of(
                 variable, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"})) {
    if (auto headers = parse_name_values(*text))
      result.headers = std::move(*headers);
    else
      result.why_nothing = "OTEL_EXPORTER_OTLP_HEADERS is no list of name=value";
  }
  if (is_true(variable("OTEL_SDK_DISABLED").value_or(""))) return otlp_settings{};
  if (!result.why_nothing.empty()) return result;
  if (keys.endpoint.empty())
    take_address(result, variable);
  else
    result.url = with_path(keys.endpoint);
  take_resource(result, keys.service, variable);
  return result;
}

} // namespace kernelmill::trackers
