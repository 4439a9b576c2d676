#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

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

// How such words of vLLM and llama.cpp begin. Not where they stand anywhere in a text: a server may
// quote what it was sent.
constexpr std::array<std::string_view, 3> tool_phrases = {R"("auto" tool choice requires)",
                                                          "tools param requires --jinja",
                                                          "tool_choice param requires --jinja"};

// How llama.cpp's words begin.
constexpr std::array<std::string_view, 2> call_phrases = {"Failed to parse tool call arguments",
                                                          "Failed to parse input at pos"};

// What every completion of a server has, and no page or message of another program.
constexpr std::array<std::string_view, 5> completion_keys = {
    R"("choices")", R"("meta_info")", R"("output_ids")", R"("token_ids")", R"("tokens_predicted")"};

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool says(std::string text, const char* phrase) {
  return lower_case(std::move(text)).find(phrase) != std::string::npos;
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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<int64_t> number_at(std::string_view text) {
  int64_t result = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), result);
  return status == std::errc{} ? std::optional{result} : std::nullopt;
}

// The number that directly follows, or precedes, the first of the phrases that has one there.
template <size_t N>
std::optional<int64_t> number_after(std::string_view text,
                                    const std::array<std::string_view, N>& phrases) {
  for (auto phrase : phrases)
    if (auto at = text.find(phrase); at != text.npos)
      if (auto x = number_at(text.substr(at + phrase.size()))) return x;
  return std::nullopt;
}

template <size_t N>
std::optional<int64_t> number_before(std::string_view text,
                                     const std::array<std::string_view, N>& phrases) {
  for (auto phrase : phrases) {
    auto end = text.find(phrase);
    if (end == text.npos) continue;
    auto begin = end;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    if (auto x = number_at(text.substr(begin, end - begin))) return x;
  }
  return std::nullopt;
}

// Of vLLM, SGLang and OpenAI. llama.cpp refuses prompts alone, and cuts the answer itself.
constexpr std::array<std::string_view, 3> before_limit = {"context length is ",
                                                          "context length of ", "context length ("};
constexpr std::array<std::string_view, 1> before_answer = {"supports at most "};
constexpr std::array<std::string_view, 4> behind_prompt = {
    " in the messages", " in the prompt", " tokens from the input", " input tokens"};
constexpr std::array<std::string_view, 2> before_total = {"you requested a total of ",
                                                          "you requested "};

} // namespace

std::optional<uint32_t> room_for_answer(const server_error& x, uint32_t asked) {
  auto text = lower_case(x.message);
  auto room = number_after(text, before_answer);
  if (auto limit = number_after(text, before_limit)) {
    auto prompt = number_before(text, behind_prompt);
    if (auto total = number_after(text, before_total); !prompt && total) prompt = *total - asked;
    if (!prompt) return std::nullopt;
    // vLLM counts a prompt no further than its limit, and says "at least".
    auto more = text.find("at least") != text.npos;
    room = std::min(*limit - *prompt, int64_t{more ? asked / 2 : asked});
  }
  if (!room || *room <= 0 || *room >= asked) return std::nullopt;
  return static_cast<uint32_t>(*room);
}

std::optional<server_error> reported_error(std::string_view text) {
  if (nests_deeper(text)) return std::nullopt;
  auto frame = json::parse(text, nullptr, false);
  if (!is_error_object(frame)) return std::nullopt;
  return read_error_object(frame);
}

bool shows_completion(std::string_view text) {
  return std::any_of(completion_keys.begin(), completion_keys.end(),
                     [&](auto key) { return text.find(key) != std::string_view::npos; });
}

bad_answer answer_without(std::string_view body, const std::string& what) {
  if (auto why = reported_error(body)) return {true, std::move(*why)};
  auto cause = json::accept(body) ? "the body has no " + what : "the body is not JSON";
  return {false,
          {cause + ": \"" + parse_error_body(body).message + "\"", {}, {}},
          shows_completion(body)};
}

server_error parse_error_body(std::string_view body) {
  if (auto result = reported_error(body))
    if (!result->message.empty() || !result->code.empty()) return *result;
  // A page of a proxy, or a plain sentence.
  return {printable(body.substr(0, 2 * max_text)), {}, {}};
}

bool refuses_tools(const server_error& x) {
  return std::any_of(tool_phrases.begin(), tool_phrases.end(),
                     [&](auto phrase) { return x.message.starts_with(phrase); });
}

bool spoils_calls(const server_error& x) {
  return std::any_of(call_phrases.begin(), call_phrases.end(),
                     [&](auto phrase) { return x.message.starts_with(phrase); });
}

bool is_context_overflow(const server_error& x) {
  return std::any_of(context_phrases.begin(), context_phrases.end(), [&](const char* phrase) {
    return says(x.message, phrase) || says(x.code, phrase) || says(x.type, phrase);
  });
}

} // namespace kernelmill
