#include "launch/server/trackers/otlp_json.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kernelmill::trackers {

namespace {

constexpr int error_code = 2;

std::string nanoseconds(double seconds) {
  return std::to_string(static_cast<uint64_t>(std::max(0.0, seconds) * 1e9));
}

} // namespace

json value_of(const std::string& x) {
  return {{"stringValue", x}};
}

json value_of(const char* x) {
  return {{"stringValue", x}};
}

json value_of(capnp::Text::Reader x) {
  return value_of(plain(x));
}

json value_of(bool x) {
  return {{"boolValue", x}};
}

json value_of(double x) {
  return {{"doubleValue", x}};
}

json value_of(uint32_t x) {
  return {{"intValue", std::to_string(x)}};
}

json value_of(uint64_t x) {
  return {{"intValue", std::to_string(x)}};
}

json value_of(const std::vector<std::string>& xs) {
  auto values = json::array();
  for (const auto& x : xs) values.push_back(value_of(x));
  return {{"arrayValue", {{"values", std::move(values)}}}};
}

json make_span(trace_id trace, span_frame x) {
  json result = {{"traceId", fmt::format("{:016x}{:016x}", trace.high, trace.low)},
                 {"spanId", fmt::format("{:016x}", x.id)}};
  if (x.parent != 0) result["parentSpanId"] = fmt::format("{:016x}", x.parent);
  result["name"] = x.name;
  result["kind"] = x.kind;
  result["startTimeUnixNano"] = nanoseconds(x.start);
  result["endTimeUnixNano"] = nanoseconds(std::max(x.start, x.end));
  result["attributes"] = std::move(x.list);
  if (!x.events.empty()) result["events"] = std::move(x.events);
  if (!x.error.empty()) result["status"] = {{"code", error_code}, {"message", x.error}};
  return result;
}

json make_event(const char* name, double at, json list) {
  return {{"timeUnixNano", nanoseconds(at)}, {"name", name}, {"attributes", std::move(list)}};
}

json traces_request(std::vector<json> spans, const name_values& resource) {
  attributes own;
  for (const auto& [key, value] : resource) own.add(key.c_str(), value);
  own.add("service.version", KERNELMILL_VERSION);
  json scope = {{"scope", {{"name", "kernelmill"}, {"version", KERNELMILL_VERSION}}},
                {"spans", std::move(spans)}};
  json whole = {{"resource", {{"attributes", own.take()}}},
                {"scopeSpans", json::array({std::move(scope)})}};
  return {{"resourceSpans", json::array({std::move(whole)})}};
}

} // namespace kernelmill::trackers
