#include <algorithm>
#include <array>
#include <cctype>

#include "actors/policy_client/protocol/openai_protocol.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr size_t max_text = 500;

// Error texts end up in logs and on terminals: no control bytes, no broken characters, not long.
std::string printable(std::string_view text) {
  std::string result;
  bool blank = false;
  for (unsigned char c : text) {
    if (result.size() >= max_text) break;
    if (c <= ' ' || c == 0x7f) {
      blank = !result.empty();
      continue;
    }
    if (blank) result.push_back(' ');
    blank = false;
    result.push_back(c < 0x80 ? static_cast<char>(c) : '?');
  }
  return result;
}

std::string error_text(const json& object, const char* key) {
  auto i = object.find(key);
  if (i == object.end() || i->is_null()) return {};
  auto text = i->is_string() ? i->get<std::string>()
                             : i->dump(-1, ' ', false, json::error_handler_t::replace);
  return printable(text);
}

server_error fields_of(const json& x) {
  return {error_text(x, "message"), error_text(x, "type"), error_text(x, "code")};
}

// Phrases of vLLM, SGLang, llama.cpp, OpenAI and the gateways in front of them, in lower case.
constexpr std::array context_phrases = {
    "context_length_exceeded", "exceed_context_size", "maximum context length",
    "context length",          "context window",      "context size",
    "max_model_len",           "prompt is too long",  "longer than the model",
    "input is too long",       "too many tokens",     "maximum input length",
};

bool says(std::string text, const char* phrase) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find(phrase) != std::string::npos;
}

// True for an object that reports an error instead of choices.
bool is_error_object(const json& frame) {
  if (!frame.is_object()) return false;
  if (frame.contains("choices") && frame["choices"].is_array() && !frame["choices"].empty())
    return false;
  auto error = frame.find("error");
  if (error != frame.end() && !error->is_null()) return true;
  auto object = frame.find("object");
  return (object != frame.end() && *object == "error") || frame.contains("detail");
}

server_error read_error_object(const json& frame) {
  auto error = frame.find("error");
  if (error != frame.end() && error->is_object()) return fields_of(*error);
  if (error != frame.end() && error->is_string()) return {error_text(frame, "error"), {}, {}};
  if (frame.contains("detail")) return {error_text(frame, "detail"), {}, {}};
  return fields_of(frame);
}

} // namespace

std::optional<server_error> reported_error(std::string_view text) {
  if (nests_deeper(text)) return std::nullopt;
  auto frame = json::parse(text, nullptr, false);
  if (!is_error_object(frame)) return std::nullopt;
  return read_error_object(frame);
}

bad_answer answer_without(std::string_view body, const std::string& what) {
  if (auto why = reported_error(body)) return {true, std::move(*why)};
  auto cause = json::accept(body) ? "the body has no " + what : "the body is not JSON";
  return {false, {cause + ": \"" + parse_error_body(body).message + "\"", {}, {}}};
}

server_error parse_error_body(std::string_view body) {
  if (auto result = reported_error(body))
    if (!result->message.empty() || !result->code.empty()) return *result;
  // A page of a proxy, or a plain sentence.
  return {printable(body.substr(0, 2 * max_text)), {}, {}};
}

bool is_context_overflow(const server_error& x) {
  return std::any_of(context_phrases.begin(), context_phrases.end(), [&](const char* phrase) {
    return says(x.message, phrase) || says(x.code, phrase) || says(x.type, phrase);
  });
}

} // namespace kernelmill
