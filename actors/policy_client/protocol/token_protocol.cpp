#include "actors/policy_client/protocol/token_protocol.hpp"

#include <algorithm>
#include <cmath>

#include "actors/policy_client/protocol/chat_request.hpp"
#include "actors/policy_client/protocol/json_view.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

std::string dump(const json& x) {
  return x.dump(-1, ' ', false, json::error_handler_t::replace);
}

tl::unexpected<bad_answer> bad(std::string_view body, const char* what) {
  return tl::unexpected<bad_answer>{answer_without(body, what)};
}

// All of them or nothing: a list with a hole would be another list.
std::optional<std::vector<int32_t>> ids_in(const json_found& list) {
  auto ids = list_in(list);
  if (!ids) return std::nullopt;
  std::vector<int32_t> result;
  result.reserve(ids->size());
  for (auto x : *ids) {
    auto id = token_id_of(x);
    if (!id) return std::nullopt;
    result.push_back(*id);
  }
  return result;
}

void add_sampling(json& to, server_kind kind, wire::Sampling::Reader sampling) {
  auto llama = kind == server_kind::llamacpp;
  if (std::isfinite(sampling.getTemperature())) to["temperature"] = sampling.getTemperature();
  if (std::isfinite(sampling.getTopP())) to["top_p"] = sampling.getTopP();
  to["top_k"] = llama ? 0 : -1;
  to["min_p"] = 0.0;
  to[llama ? "repeat_penalty" : "repetition_penalty"] = 1.0;
  if (sampling.getStop().size() == 0) return;
  auto& stop = to["stop"] = json::array();
  for (auto x : sampling.getStop()) stop.push_back(x.cStr());
}

// Marks of calls that are tokens of their own would be left out of the text, as those that end it.
void keep_marks(json& to, server_kind kind) {
  if (kind == server_kind::sglang) to["skip_special_tokens"] = false;
  if (kind == server_kind::llamacpp)
    to["preserved_tokens"] = {"<tool_call>", "</tool_call>", "[TOOL_CALLS]",
                              "[ARGS]",      "[CALL_ID]",    "<|python_tag|>"};
}

} // namespace

bool takes_token_ids(server_kind kind) noexcept {
  return kind != server_kind::openai;
}

bool renders_as_text(server_kind kind) noexcept {
  return kind == server_kind::llamacpp;
}

const char* tokenize_path(server_kind kind) noexcept {
  return kind == server_kind::sglang ? "v1/tokenize" : "tokenize";
}

const char* generate_path(server_kind kind) noexcept {
  if (kind == server_kind::llamacpp) return "completion";
  return kind == server_kind::sglang ? "generate" : "inference/v1/generate";
}

const char* detokenize_path(server_kind kind) noexcept {
  return kind == server_kind::sglang ? "v1/detokenize" : "detokenize";
}

// -- requests ---------------------------------------------------------------------------------

std::string tokenize_body(wire::CompletionRequest::Reader request, const std::string& model,
                          const std::string* placeholder) {
  return request_text(request, {{"model", model}, {"add_generation_prompt", true}}, {},
                      placeholder);
}

std::string tokenize_text_body(const std::string& text) {
  // As its own chat does: marks in the text are marks, and the model's first token stands in front.
  return dump({{"content", text}, {"add_special", true}, {"parse_special", true}});
}

std::string render_by_chat_body(wire::CompletionRequest::Reader request,
                                const chat_options& options, const std::string* placeholder) {
  auto fields = chat_fields(request, options);
  fields[options.max_tokens_field] = 1;
  fields.erase("stop");
  fields.erase("logprobs");
  // No call is to be read. SGLang does not show tools that may not be called; vLLM does, and
  // refuses to choose without a parser.
  auto choice = options.kind == server_kind::vllm ? "none" : "auto";
  return request_text(request, fields, choice, placeholder);
}

std::string generate_body(server_kind kind, wire::CompletionRequest::Reader request,
                          std::span<const int32_t> prompt, const std::string& model,
                          const std::string& request_id, uint32_t max_tokens) {
  auto sampling = request.getSampling();
  if (max_tokens == 0) max_tokens = sampling.getMaxTokens();
  json params;
  add_sampling(params, kind, sampling);
  if (request.getTools().size() > 0) keep_marks(params, kind);
  auto ids = json::array();
  for (auto id : prompt) ids.push_back(id);
  if (kind == server_kind::llamacpp) {
    if (sampling.getSeed() >= 0) params["seed"] = sampling.getSeed();
    params["prompt"] = std::move(ids);
    params["n_predict"] = max_tokens;
    params["n_probs"] = 1;
    params["return_tokens"] = true;
    params["stream"] = false;
    return dump(params);
  }
  if (kind == server_kind::sglang) {
    params["max_new_tokens"] = max_tokens;
    if (sampling.getSeed() >= 0) params["sampling_seed"] = sampling.getSeed();
    return dump({{"rid", request_id},
                 {"input_ids", std::move(ids)},
                 {"sampling_params", std::move(params)},
                 {"return_logprob", true},
                 {"logprob_start_len", -1},
                 {"stream", false}});
  }
  params["max_tokens"] = max_tokens;
  params["logprobs"] = 1;
  if (sampling.getSeed() >= 0) params["seed"] = sampling.getSeed();
  return dump({{"request_id", request_id},
               {"model", model},
               {"token_ids", std::move(ids)},
               {"sampling_params", std::move(params)},
               {"stream", false}});
}

std::string detokenize_body(std::span<const int32_t> ids, const std::string& model) {
  auto list = json::array();
  for (auto id : ids) list.push_back(id);
  return dump({{"model", model}, {"tokens", list}});
}

// -- answers ----------------------------------------------------------------------------------

tl::expected<std::vector<int32_t>, bad_answer> parse_token_list(std::string_view body) {
  auto frame = json_document::of_answer(body);
  auto ids = ids_in(member(frame.root(), "tokens"));
  if (!ids || ids->empty()) return bad(body, "token ids");
  return std::move(*ids);
}

namespace {

tl::expected<completion_answer, bad_answer> parse_vllm(const json_found& frame,
                                                       std::string_view body) {
  auto choice = first_of(member(frame, "choices"));
  if (!choice) return bad(body, "choices");
  completion_answer answer;
  answer.finish_reason = text_of(member(choice, "finish_reason"));
  auto ids = ids_in(member(choice, "token_ids"));
  // An aborted request may have sampled nothing.
  if (!ids && answer.finish_reason != "abort") return bad(body, "token ids");
  if (ids) answer.token_ids = std::move(*ids);
  if (auto entries = list_in(member(member(choice, "logprobs"), "content")))
    for (auto x : *entries) answer.logprobs.push_back(logprob_of(member(x, "logprob")));
  read_weight_versions(answer.weight_versions, frame);
  read_weight_versions(answer.weight_versions, choice);
  return answer;
}

// With a status the abort is that error; without one it is the server's own business.
std::optional<bad_answer> abort_of(const json_found& finish) {
  auto status = as<int64_t>(member(finish, "status_code"));
  if (!status) return std::nullopt;
  return bad_answer{true,
                    {parse_error_body(text_of(member(finish, "message"))).message, "abort",
                     std::to_string(*status)}};
}

tl::expected<completion_answer, bad_answer> parse_sglang(const json_found& frame,
                                                         std::string_view body) {
  auto meta = member(frame, "meta_info");
  if (!is_object(meta)) return bad(body, "meta_info");
  completion_answer answer;
  auto finish = member(meta, "finish_reason");
  answer.finish_reason = text_of(is_object(finish) ? member(finish, "type") : finish);
  if (answer.finish_reason == "abort")
    if (auto aborted = abort_of(finish)) return tl::unexpected<bad_answer>{std::move(*aborted)};
  answer.content = text_of(member(frame, "text"));
  auto ids = ids_in(member(frame, "output_ids"));
  if (auto entries = list_in(member(meta, "output_token_logprobs"))) {
    std::vector<int32_t> sampled;
    for (auto x : *entries) {
      auto pair = list_in(x);
      int64_t id = 0;
      if (!pair || pair->at(1).get(id)) continue;
      answer.logprobs.push_back(logprob_of(first_of(x)));
      sampled.push_back(static_cast<int32_t>(id));
    }
    if (!ids) ids = std::move(sampled);
  }
  if (!ids && answer.finish_reason != "abort") return bad(body, "output_ids");
  if (ids) answer.token_ids = std::move(*ids);
  read_weight_versions(answer.weight_versions, meta);
  return answer;
}

// `tokens` are all that were sampled; of some of them no probability is told, as in a chat.
tl::expected<completion_answer, bad_answer> parse_llama(const json_found& frame,
                                                        std::string_view body) {
  auto ids = ids_in(member(frame, "tokens"));
  auto why = as<std::string_view>(member(frame, "stop_type"));
  if (!ids || !why) return bad(body, "token ids");
  completion_answer answer;
  answer.finish_reason = *why == "limit" ? "length" : "stop";
  answer.content = text_of(member(frame, "content"));
  answer.model = text_of(member(frame, "model"));
  answer.token_ids = std::move(*ids);
  if (auto entries = list_in(member(frame, "completion_probabilities")))
    for (auto x : *entries) answer.logprobs.push_back(logprob_of(member(x, "logprob")));
  return answer;
}

tl::expected<completion_answer, bad_answer> parse_of(server_kind kind, const json_found& frame,
                                                     std::string_view body) {
  switch (kind) {
    case server_kind::sglang: return parse_sglang(frame, body);
    case server_kind::llamacpp: return parse_llama(frame, body);
    default: return parse_vllm(frame, body);
  }
}

} // namespace

tl::expected<completion_answer, bad_answer> parse_generated(server_kind kind,
                                                            std::string_view body) {
  auto frame = json_document::of_answer(body);
  auto result = parse_of(kind, frame.root(), body);
  if (!result) return result;
  result->completion_tokens = static_cast<uint32_t>(result->token_ids.size());
  settle_words(*result);
  settle_tokens(*result);
  settle_weight_versions(result->weight_versions, result->token_ids.size());
  return result;
}

tl::expected<std::string, bad_answer> parse_detokenized(std::string_view body) {
  auto frame = json_document::of_answer(body);
  for (const char* key : {"prompt", "text", "content"})
    if (auto text = as<std::string_view>(member(frame.root(), key))) return std::string{*text};
  return bad(body, "text");
}

std::span<const int32_t> ids_of_text(const completion_answer& answer, bool stop_texts) noexcept {
  std::span<const int32_t> ids{answer.token_ids};
  return answer.finish_reason == "stop" && !stop_texts && !ids.empty() ? ids.first(ids.size() - 1)
                                                                       : ids;
}

std::string cut_at_stop(std::string text, wire::CompletionRequest::Reader request) {
  auto cut = text.size();
  for (auto x : request.getSampling().getStop())
    if (x.size() > 0) cut = std::min(cut, text.find(x.cStr()));
  text.resize(std::min(cut, text.size()));
  return text;
}

} // namespace kernelmill
