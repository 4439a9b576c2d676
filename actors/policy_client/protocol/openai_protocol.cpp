#include "actors/policy_client/protocol/openai_protocol.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "actors/policy_client/protocol/chat_calls.hpp"
#include "actors/policy_client/protocol/chat_request.hpp"
#include "actors/policy_client/protocol/json_view.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr std::string_view token_id_prefix = "token_id:";

uint32_t count_of(const json_found& x) {
  auto value = as<double>(x).value_or(0);
  return value > 0 && value < 4294967295.0 ? static_cast<uint32_t>(value) : 0;
}

// False when there is no list.
bool append_ids(std::vector<int32_t>& to, const json_found& list) {
  auto ids = list_in(list);
  if (!ids) return false;
  for (auto x : *ids)
    if (auto id = token_id_of(x)) to.push_back(*id);
  return true;
}

// They stand beside the choices or in the first one, depending on server and version.
void add_prompt_ids(completion_answer& answer, const json_found& x) {
  if (answer.prompt_token_ids.empty())
    append_ids(answer.prompt_token_ids, member(x, "prompt_token_ids"));
}

// One entry of logprobs.content. Some servers tell the id there, as a number or as "token_id:42".
void append_logprob(completion_answer& answer, json_element entry, bool take_id) {
  answer.logprobs.push_back(logprob_of(member(entry, "logprob")));
  if (!take_id) return;
  answer.ids_of_logprobs = true;
  for (const char* key : {"token_id", "id"})
    if (auto id = token_id_of(member(entry, key))) return answer.token_ids.push_back(*id);
  auto token = as<std::string_view>(member(entry, "token")).value_or(std::string_view{});
  if (!token.starts_with(token_id_prefix)) return;
  token.remove_prefix(token_id_prefix.size());
  int32_t id = 0;
  auto [end, status] = std::from_chars(token.data(), token.data() + token.size(), id);
  if (status == std::errc{} && end == token.data() + token.size()) answer.token_ids.push_back(id);
}

void add_number(json& body, const char* key, double value) {
  if (std::isfinite(value)) body[key] = value;
}

void add_kind_fields(json& body, server_kind kind, bool stream) {
  switch (kind) {
    case server_kind::openai: break;
    case server_kind::vllm:
    case server_kind::sglang:
      // Servers that do not know the field pass over it; SGLang refuses it with a stream.
      if (kind == server_kind::vllm || !stream) body["return_token_ids"] = true;
      body["top_k"] = -1;
      body["min_p"] = 0.0;
      body["repetition_penalty"] = 1.0;
      break;
    case server_kind::llamacpp:
      body["top_k"] = 0;
      body["min_p"] = 0.0;
      body["repeat_penalty"] = 1.0;
      // Else it tells twenty others beside each token; of none it tells not even the one.
      if (body.contains("logprobs")) body["top_logprobs"] = 1;
      break;
  }
}

} // namespace

std::string_view to_string(server_kind x) noexcept {
  switch (x) {
    case server_kind::openai: return "openai";
    case server_kind::vllm: return "vllm";
    case server_kind::sglang: return "sglang";
    case server_kind::llamacpp: return "llamacpp";
  }
  return "openai";
}

std::optional<server_kind> parse_server_kind(std::string_view name) {
  for (auto x :
       {server_kind::openai, server_kind::vllm, server_kind::sglang, server_kind::llamacpp})
    if (name == to_string(x)) return x;
  return std::nullopt;
}

json chat_fields(wire::CompletionRequest::Reader request, const chat_options& options) {
  auto sampling = request.getSampling();
  json body{{"model", options.model}};
  add_number(body, "temperature", sampling.getTemperature());
  add_number(body, "top_p", sampling.getTopP());
  body[options.max_tokens_field] =
      options.max_tokens > 0 ? options.max_tokens : sampling.getMaxTokens();
  if (sampling.getSeed() >= 0) body["seed"] = sampling.getSeed();
  if (sampling.getStop().size() > 0) {
    auto& stop = body["stop"] = json::array();
    for (auto x : sampling.getStop()) stop.push_back(x.cStr());
  }
  if (sampling.getLogprobs() || options.logprobs) body["logprobs"] = true;
  if (options.stream) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
  }
  add_kind_fields(body, options.kind, options.stream);
  return body;
}

std::string chat_body(wire::CompletionRequest::Reader request, const chat_options& options) {
  return request_text(request, chat_fields(request, options), request.getToolChoice().cStr());
}

// -- answers ----------------------------------------------------------------------------------

std::string full_text(const completion_answer& x) {
  auto words = x.content.empty() && !x.takes_calls ? words_of_calls(x.calls) : x.content;
  if (x.reasoning.empty()) return words;
  return "<think>\n" + x.reasoning + "\n</think>\n" + words;
}

namespace {

// A text, or a list of parts: [{"type":"text","text":"..."}, ...]. Other parts say no words.
std::string content_of(const json_found& x) {
  auto parts = list_in(x);
  if (!parts) return text_of(x);
  std::string result;
  for (auto part : *parts) result += text_of(member(part, "text"));
  return result;
}

} // namespace

void add_choice(completion_answer& answer, json_element choice, bool streamed) {
  auto words = member(choice, streamed ? "delta" : "message");
  answer.content += content_of(member(words, "content"));
  answer.content += text_of(member(words, "refusal")); // instead of a content
  add_calls(answer, words, streamed);
  auto reasoning = as<std::string_view>(member(words, "reasoning_content"));
  answer.reasoning += reasoning ? std::string{*reasoning} : text_of(member(words, "reasoning"));
  auto finish = member(choice, "finish_reason");
  if (auto text = as<std::string_view>(finish)) answer.finish_reason = *text;
  if (is_object(finish)) answer.finish_reason = text_of(member(finish, "type"));
  add_prompt_ids(answer, choice);
  read_weight_versions(answer.weight_versions, choice);
  // vLLM's name, and SGLang's of a chat.
  bool ids = append_ids(answer.token_ids, member(choice, "token_ids")) ||
             append_ids(answer.token_ids, member(choice, "response_token_ids"));
  if (auto entries = list_in(member(member(choice, "logprobs"), "content")))
    for (auto x : *entries) append_logprob(answer, x, !ids);
}

void add_frame(completion_answer& answer, json_element frame) {
  if (auto model = as<std::string_view>(member(frame, "model"))) answer.model = *model;
  if (auto usage = member(frame, "usage"); is_object(usage)) {
    answer.prompt_tokens = count_of(member(usage, "prompt_tokens"));
    answer.completion_tokens = count_of(member(usage, "completion_tokens"));
  }
  add_prompt_ids(answer, frame);
  read_weight_versions(answer.weight_versions, frame);
  read_weight_versions(answer.weight_versions, member(frame, "metadata"));
  if (auto x = as<std::string_view>(member(frame, "system_fingerprint"))) answer.fingerprint = *x;
}

void settle_version(completion_answer& answer, server_kind kind) {
  auto tokens = std::max<size_t>(answer.token_ids.size(), answer.completion_tokens);
  auto version = answer.fingerprint;
  if (kind == server_kind::llamacpp)
    version = answer.model + (version.empty() ? "" : "@" + version);
  if (answer.weight_versions.empty() && !version.empty())
    add_weight_version(answer.weight_versions, version);
  settle_weight_versions(answer.weight_versions, tokens);
}

void settle_words(completion_answer& answer) {
  auto settle = [&](std::string& text) {
    if (show_mended(text)) answer.broken_text = true;
  };
  settle(answer.content);
  settle(answer.reasoning);
  for (auto& x : answer.calls)
    for (auto* text : {&x.id, &x.name, &x.arguments}) settle(*text);
}

void settle_tokens(completion_answer& answer) {
  if (answer.token_ids.empty() || answer.logprobs.empty()) return;
  auto told = answer.token_ids.size();
  // llama.cpp tells none of tokens that end inside a character or could have begun a stop text:
  // what is left is another text than the one that was sampled.
  auto holes = answer.ids_of_logprobs && told < answer.completion_tokens;
  if (told == answer.logprobs.size() && !holes) return;
  if (holes) answer.token_ids.clear();
  // Ids alone can be scored again; log-probabilities of unknown tokens are worth nothing.
  answer.logprobs.clear();
  answer.logprobs_dropped = true;
}

tl::expected<completion_answer, bad_answer> parse_chat_response(std::string_view body) {
  auto frame = json_document::of_answer(body);
  auto choice = first_of(member(frame.root(), "choices"));
  if (!is_object(member(choice, "message")))
    return tl::unexpected<bad_answer>{answer_without(body, "choices")};
  completion_answer answer;
  add_frame(answer, *frame.root());
  add_choice(answer, *choice, false);
  settle_words(answer);
  settle_tokens(answer);
  return answer;
}

std::vector<std::string> parse_model_list(std::string_view body) {
  std::vector<std::string> result;
  json_document frame{body};
  if (auto data = list_in(member(frame.root(), "data")))
    for (auto x : *data)
      if (auto id = text_of(member(x, "id")); !id.empty() && id.size() <= 500) result.push_back(id);
  return result;
}

} // namespace kernelmill
