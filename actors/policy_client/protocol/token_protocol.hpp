#pragma once

// The words of servers that take and give token ids: vLLM's /tokenize, /inference/v1/generate and
// /detokenize, SGLang's /v1/tokenize and /generate, llama.cpp's /apply-template, /tokenize and
// /completion. Plain functions on plain values.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/policy_client/protocol/openai_protocol.hpp"

namespace kernelmill {

/// Whether servers of this kind have such routes at all.
bool takes_token_ids(server_kind kind) noexcept;

/// Whether a conversation is rendered in two steps: its text (at template_path, asked for by
/// tokenize_body), then the ids of the text (at tokenize_path, by tokenize_text_body).
bool renders_as_text(server_kind kind) noexcept;

/// Paths of the routes, from the server's root.
inline constexpr const char* template_path = "apply-template";
const char* tokenize_path(server_kind kind) noexcept;
const char* generate_path(server_kind kind) noexcept;
const char* detokenize_path(server_kind kind) noexcept;

/// Asks for the ids of a conversation as the model sees it, up to where it is to go on. With a
/// `placeholder` it stands in the place of the last answer's content.
std::string tokenize_body(wire::CompletionRequest::Reader request, const std::string& model,
                          const std::string* placeholder = nullptr);

std::string tokenize_text_body(const std::string& text);

/// The same of a server that renders for completions only: asks for one token by chat, whose
/// answer tells the ids of its prompt where the server has `return_token_ids`.
std::string render_by_chat_body(wire::CompletionRequest::Reader request,
                                const chat_options& options,
                                const std::string* placeholder = nullptr);

/// Asks for a completion of these ids, with log-probabilities and neutral filters. `max_tokens` 0:
/// those of the request.
std::string generate_body(server_kind kind, wire::CompletionRequest::Reader request,
                          std::span<const int32_t> prompt, const std::string& model,
                          const std::string& request_id, uint32_t max_tokens = 0);

std::string detokenize_body(std::span<const int32_t> ids, const std::string& model);

tl::expected<std::vector<int32_t>, bad_answer> parse_token_list(std::string_view body);
/// The content is empty where the server sends no text.
tl::expected<completion_answer, bad_answer> parse_generated(server_kind kind,
                                                            std::string_view body);
/// Also the text of a conversation.
tl::expected<std::string, bad_answer> parse_detokenized(std::string_view body);

/// The ids whose text is the completion: without the mark with which the model ended it. Where
/// stop texts were asked for, the last id may be a part of one, and stays.
std::span<const int32_t> ids_of_text(const completion_answer& answer, bool stop_texts) noexcept;

/// Cuts a text where the first of the stop texts begins.
std::string cut_at_stop(std::string text, wire::CompletionRequest::Reader request);

} // namespace kernelmill
