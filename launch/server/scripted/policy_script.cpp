#include "launch/server/scripted/policy_script.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include "messages/base/files.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr size_t max_script_bytes = size_t{64} << 20;
constexpr size_t max_kernel_bytes = size_t{1} << 20;

tl::unexpected<error> bad(const std::string& source, const std::string& key,
                          const std::string& cause, std::string hint = {}) {
  return configuration_error("bad_script",
                             "failed to read the policy script " + source + ": " +
                                 (key.empty() ? cause : key + " " + cause),
                             std::move(hint));
}

expected<std::string> read_file(const std::filesystem::path& path, size_t limit) {
  std::error_code status;
  auto size = std::filesystem::file_size(path, status);
  if (status) return configuration_error("missing_file", status.message());
  if (size > limit) return configuration_error("missing_file", "it is too large");
  auto text = read_whole(path.string());
  if (!text) return configuration_error("missing_file", "it cannot be read");
  return std::move(*text);
}

// Reads one JSON object with a fixed set of keys. The first fault is kept, and later calls then
// do nothing, so that a caller checks once.
class fields {
public:
  fields(const json& object, std::string source, std::string path)
      : object_(object), source_(std::move(source)), path_(std::move(path)) {
    if (!object_.is_object()) fail("", "is not an object");
  }

  void allow(std::initializer_list<const char*> keys) {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items())
      if (std::none_of(keys.begin(), keys.end(),
                       [&known_as = key](const char* x) { return known_as == x; })) {
        std::string known;
        for (const auto* x : keys) known += known.empty() ? x : std::string{", "} + x;
        fail(key, "is not a key of a script", "the keys here are " + known);
      }
  }

  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }

  void read(const char* key, std::string& to) {
    if (!has(key)) return;
    if (!object_[key].is_string()) return fail(key, "is not a text");
    to = object_[key].get<std::string>();
  }

  template <class T>
  void read_number(const char* key, T& to, double low, double high) {
    if (!has(key)) return;
    const auto& x = object_[key];
    auto whole = std::is_floating_point_v<T> || x.is_number_integer();
    if (!x.is_number() || !whole || x.get<double>() < low || x.get<double>() > high)
      return fail(key, "is not a number from " + json(low).dump() + " to " + json(high).dump());
    to = x.get<T>();
  }

  void read(const char* key, bool& to) {
    if (!has(key)) return;
    if (!object_[key].is_boolean()) return fail(key, "is neither true nor false");
    to = object_[key].get<bool>();
  }

  void read(const char* key, std::optional<uint32_t>& to) {
    if (!has(key)) return;
    uint32_t value = 0;
    read_number(key, value, 0, 4294967295.0);
    to = value;
  }

  void read_match(script_match& to) {
    if (has("prompt")) read("prompt", to.prompt.emplace());
    if (has("task")) read("task", to.task.emplace());
    read("member", to.member);
    read("turn", to.turn);
  }

  void fail(const std::string& key, const std::string& cause, std::string hint = {}) {
    if (fault_) return;
    auto place = path_ + (key.empty() || path_.empty() ? "" : ".") + key;
    fault_ = bad(source_, place.empty() ? "the document" : place, cause, std::move(hint)).value();
  }

  const std::optional<error>& fault() const { return fault_; }

private:
  const json& object_;
  std::string source_;
  std::string path_;
  std::optional<error> fault_;
};

template <class T>
expected<T> checked(const fields& f, T value) {
  if (f.fault()) return tl::unexpected<error>{*f.fault()};
  return value;
}

template <class T, class Read>
expected<void> read_list(const json& document, const char* key, const std::string& source,
                         std::vector<T>& to, Read read) {
  if (!document.contains(key)) return {};
  if (!document[key].is_array()) return bad(source, key, "is not a list");
  for (size_t i = 0; i < document[key].size(); ++i) {
    auto x = read(document[key][i], std::string{key} + "[" + std::to_string(i) + "]");
    KM_TRY(x);
    to.push_back(std::move(*x));
  }
  return {};
}

std::string thought_text(const std::string& thought) {
  return "<think>\n" + thought + "\n</think>";
}

constexpr const char* of_script = "paths are relative to the script";

expected<tool_call> read_call(const json& x, const std::string& source, const std::string& path,
                              const std::filesystem::path& folder) {
  fields f{x, source, path};
  f.allow({"name", "arguments", "files"});
  tool_call result;
  f.read("name", result.name);
  if (result.name.empty()) f.fail("name", "is missing or empty");
  auto arguments = f.has("arguments") ? x["arguments"] : json::object();
  // A text is sent as it is: what a model writes need not be JSON.
  if (arguments.is_string() && !f.has("files")) {
    result.arguments = arguments.get<std::string>();
    return checked(f, std::move(result));
  }
  if (!arguments.is_object()) f.fail("arguments", "is no object");
  if (f.has("files") && !x["files"].is_object()) f.fail("files", "is no object");
  if (f.fault()) return checked(f, std::move(result));
  auto files = f.has("files") ? x["files"] : json::object();
  for (const auto& [key, file] : files.items()) {
    auto name = file.is_string() ? folder / file.get<std::string>() : folder;
    auto content = read_file(name, max_kernel_bytes);
    if (!content)
      f.fail("files", "names " + name.string() + ": " + content.error().message, of_script);
    else
      arguments[key] = std::move(*content);
  }
  result.arguments = arguments.dump(-1, ' ', false, json::error_handler_t::replace);
  return checked(f, std::move(result));
}

expected<scripted_reply> read_reply(const json& x, const std::string& source,
                                    const std::string& path, const std::filesystem::path& folder) {
  fields f{x, source, path};
  f.allow({"prompt", "task", "member", "turn", "text", "thought", "kernel", "diagnosis", "evidence",
           "tool_calls", "finish_reason"});
  scripted_reply result;
  std::string thought, kernel, diagnosis, evidence;
  f.read_match(result.match);
  f.read("text", result.text);
  f.read("thought", thought);
  f.read("kernel", kernel);
  f.read("diagnosis", diagnosis);
  f.read("evidence", evidence);
  f.read("finish_reason", result.finish_reason);
  auto words = f.has("text") + f.has("kernel");
  if (words != 1 && (words != 0 || !f.has("tool_calls")))
    f.fail("", "needs either \"text\" or \"kernel\", or \"tool_calls\"",
           "\"text\" is a whole completion, \"kernel\" the path of a source file");
  if (f.has("text") && (f.has("thought") || f.has("diagnosis") || f.has("evidence")))
    f.fail("text", "stands beside \"thought\", \"diagnosis\" or \"evidence\"",
           "put them into the text");
  if (f.fault()) return checked(f, std::move(result));
  auto calls = read_list(x, "tool_calls", source, result.calls,
                         [&](const json& call, const std::string& at) {
                           return read_call(call, source, path + "." + at, folder);
                         });
  KM_TRY(calls);
  if (f.has("tool_calls") && result.calls.empty()) f.fail("tool_calls", "is empty");
  if (words == 0 && !thought.empty()) result.text = thought_text(thought);
  if (!f.has("kernel")) return checked(f, std::move(result));
  auto file = folder / kernel;
  auto content = read_file(file, max_kernel_bytes);
  if (!content)
    f.fail("kernel", "names " + file.string() + ": " + content.error().message, of_script);
  else
    result.text = compose_completion(thought, diagnosis, evidence, *content);
  return checked(f, std::move(result));
}

const std::map<std::string, fault_kind>& fault_kinds() {
  static const std::map<std::string, fault_kind> kinds{
      {"status", fault_kind::status}, {"garbage", fault_kind::garbage},
      {"stall", fault_kind::stall},   {"truncate", fault_kind::truncate},
      {"reset", fault_kind::reset},   {"abort", fault_kind::abort},
      {"error", fault_kind::error},   {"huge", fault_kind::huge},
  };
  return kinds;
}

expected<scripted_fault> read_fault(const json& x, const std::string& source,
                                    const std::string& path) {
  fields f{x, source, path};
  f.allow({"prompt", "task", "member", "turn", "kind", "status", "retry_after", "message", "code",
           "every", "times", "seconds", "bytes"});
  scripted_fault result;
  std::string kind = "status";
  f.read_match(result.match);
  f.read("kind", kind);
  if (auto i = fault_kinds().find(kind); i != fault_kinds().end())
    result.kind = i->second;
  else
    f.fail("kind", "is \"" + kind + "\", which is no fault",
           "use status, garbage, stall, truncate, reset, abort, error or huge");
  if (kind == "status" && !f.has("status"))
    f.fail("", "needs a \"status\" or a \"kind\"", "e.g. {\"status\": 503, \"every\": 7}");
  f.read_number("status", result.status, 300, 599);
  f.read("message", result.message);
  f.read("code", result.code);
  f.read_number("every", result.every, 1, 4294967295.0);
  f.read_number("times", result.times, 1, 4294967295.0);
  f.read_number("seconds", result.seconds, 0, 86400);
  f.read_number("bytes", result.bytes, 1, 1e9);
  if (f.has("retry_after") && x["retry_after"].is_string()) {
    f.read("retry_after", result.retry_after.emplace());
  } else if (f.has("retry_after")) {
    uint32_t seconds = 0;
    f.read_number("retry_after", seconds, 0, 86400);
    result.retry_after = std::to_string(seconds);
  }
  return checked(f, std::move(result));
}

expected<scripted_latency> read_latency(const json& x, const std::string& source) {
  constexpr double day_ms = 86'400'000;
  fields f{x, source, "latency"};
  f.allow({"kind", "ms", "low_ms", "high_ms", "median_ms", "sigma", "max_ms", "per_token_ms"});
  scripted_latency result;
  std::string kind = "constant";
  f.read("kind", kind);
  using shape = scripted_latency::shape;
  if (kind == "uniform")
    result.kind = shape::uniform;
  else if (kind == "lognormal")
    result.kind = shape::lognormal;
  else if (kind != "constant")
    f.fail("kind", "is \"" + kind + "\"", "use constant, uniform or lognormal");
  f.read_number("ms", result.ms, 0, day_ms);
  f.read_number("low_ms", result.low_ms, 0, day_ms);
  f.read_number("high_ms", result.high_ms, result.low_ms, day_ms);
  f.read_number("median_ms", result.median_ms, 0, day_ms);
  f.read_number("sigma", result.sigma, 0, 10);
  f.read_number("max_ms", result.max_ms, 0, day_ms);
  f.read_number("per_token_ms", result.per_token_ms, 0, day_ms);
  if (result.kind == shape::uniform && result.high_ms < result.low_ms)
    f.fail("high_ms", "is below low_ms");
  return checked(f, result);
}

expected<scripted_version> read_version(const json& x, const std::string& source,
                                        const std::string& path) {
  fields f{x, source, path};
  f.allow({"version", "from_request"});
  scripted_version result;
  f.read("version", result.version);
  f.read_number("from_request", result.from_request, 1, 1e15);
  if (result.version.empty()) f.fail("version", "is missing or empty");
  return checked(f, std::move(result));
}

// Turns the place of a syntax error into line and column.
std::string place_of(const std::string& text, size_t byte) {
  auto end =
      text.begin() + static_cast<std::ptrdiff_t>(std::min(byte == 0 ? 0 : byte - 1, text.size()));
  auto line = 1 + std::count(text.begin(), end, '\n');
  auto last = std::find(std::make_reverse_iterator(end), text.rend(), '\n').base();
  return "line " + std::to_string(line) + ", column " + std::to_string(end - last + 1);
}

expected<json> parse_json(const std::string& text, const std::string& source) {
  if (nests_deeper(text)) return bad(source, {}, "it nests too deep");
  try {
    return json::parse(text, nullptr, true, true);
  } catch (const json::parse_error& e) {
    std::string cause = e.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: <cause>"
    if (auto colon = cause.find(": "); colon != std::string::npos) cause.erase(0, colon + 2);
    return bad(source, {}, place_of(text, e.byte) + ": " + cause);
  } catch (const json::exception& e) {
    return bad(source, {}, e.what());
  }
}

} // namespace

std::string compose_completion(const std::string& thought, const std::string& diagnosis,
                               const std::string& evidence, const std::string& kernel) {
  auto result = thought_text(thought) + "\n";
  if (!diagnosis.empty()) result += "<DIAGNOSIS>" + diagnosis + "</DIAGNOSIS>\n";
  if (!evidence.empty()) result += "<EVIDENCE>\n" + evidence + "\n</EVIDENCE>\n";
  result += "<KERNEL>\n```cpp\n" + kernel;
  if (!kernel.empty() && kernel.back() != '\n') result += '\n';
  return result + "```\n</KERNEL>";
}

expected<policy_script> parse_policy_script(const std::string& text, const std::string& source,
                                            const std::filesystem::path& folder) {
  auto document = parse_json(text, source);
  KM_TRY(document);
  fields f{*document, source, ""};
  f.allow({"model", "kind", "latency_ms", "latency", "versions", "drift", "strip_thoughts",
           "renders", "tools", "require_key_env", "replies", "faults"});
  policy_script result;
  f.read("model", result.model);
  f.read("require_key_env", result.require_key_env);
  std::string kind = "openai";
  f.read("kind", kind);
  if (auto known = parse_server_kind(kind))
    result.kind = *known;
  else
    f.fail("kind", "is \"" + kind + "\"", "use openai, vllm, sglang or llamacpp");
  f.read_number("latency_ms", result.latency.ms, 0, 3'600'000);
  if (f.has("latency") && f.has("latency_ms"))
    f.fail("latency", "stands beside \"latency_ms\"", "keep one of the two");
  f.read("drift", result.drift);
  f.read("strip_thoughts", result.strip_thoughts);
  f.read("renders", result.renders);
  f.read("tools", result.tools);
  if (f.fault()) return tl::unexpected<error>{*f.fault()};
  if (f.has("latency")) {
    auto latency = read_latency((*document)["latency"], source);
    KM_TRY(latency);
    result.latency = *latency;
  }
  auto versions = read_list(
      *document, "versions", source, result.versions,
      [&](const json& x, const std::string& path) { return read_version(x, source, path); });
  KM_TRY(versions);
  auto replies = read_list(
      *document, "replies", source, result.replies,
      [&](const json& x, const std::string& path) { return read_reply(x, source, path, folder); });
  KM_TRY(replies);
  auto faults = read_list(
      *document, "faults", source, result.faults,
      [&](const json& x, const std::string& path) { return read_fault(x, source, path); });
  KM_TRY(faults);
  if (result.replies.empty())
    return bad(source, "replies", "is empty", "a script needs at least one reply");
  return result;
}

expected<policy_script> load_policy_script(const std::filesystem::path& file) {
  auto text = read_file(file, max_script_bytes);
  if (!text)
    return configuration_error("missing_file",
                               "failed to read the policy script " + file.string() + ": " +
                                   text.error().message,
                               "check the path");
  return parse_policy_script(*text, file.string(), file.parent_path());
}

} // namespace kernelmill
