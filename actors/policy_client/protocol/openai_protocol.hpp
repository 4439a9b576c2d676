#pragma once

// The words of OpenAI-compatible servers: what a request says, what an answer means, and the four
// shapes that errors come in. Plain functions on plain values; nothing here does I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "actors/policy_client/protocol/tool_call.hpp"
#include "actors/policy_client/protocol/weight_versions.hpp"
#include "messages/error.hpp"
#include "messages/policy.capnp.h"

namespace simdjson::dom {
class element;
}

namespace kernelmill {

enum class server_kind : unsigned char { openai, vllm, sglang, llamacpp };

/// Returns e.g. "vllm".
std::string_view to_string(server_kind x) noexcept;
std::optional<server_kind> parse_server_kind(std::string_view name);

struct chat_options {
  std::string model;
  server_kind kind = server_kind::openai;
  bool stream = false;
  std::string max_tokens_field = "max_tokens"; ///< OpenAI's own newer models want another name
  bool logprobs = false;                       ///< ask for them whatever the request says
  uint32_t max_tokens = 0;                     ///< 0: those of the request
};

/// Returns the body of POST /v1/chat/completions. Bytes that are not UTF-8 become U+FFFD. For
/// servers whose sampling defaults are not neutral the neutral values are sent: an answer must
/// come from the distribution that its log-probabilities speak of.
std::string chat_body(wire::CompletionRequest::Reader request, const chat_options& options);

/// The same without conversation and tools; see request_text().
nlohmann::json chat_fields(wire::CompletionRequest::Reader request, const chat_options& options);

/// What a server said. `text` of the result is full_text().
struct completion_answer {
  std::string content;
  std::string reasoning;        ///< of servers that split the thought off
  std::vector<tool_call> calls; ///< of tools, as the server read them out of the model's words
  std::map<int64_t, size_t> open_calls; ///< of a stream: its numbers of them
  size_t call_bytes = 0;                ///< of all texts of the calls
  size_t surplus_calls = 0;             ///< above max_tool_calls, and not kept
  bool takes_calls = false;             ///< tools were asked for; else calls are words like others
  bool broken_text = false; ///< some of the words were no Unicode text, and are U+FFFD now
  std::string finish_reason;
  std::string model;
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  std::vector<int32_t> prompt_token_ids;
  std::vector<int32_t> token_ids;
  bool ids_of_logprobs = false;  ///< told one by one beside the log-probabilities, in no list
  std::vector<float> logprobs;   ///< NaN where the server said null
  bool logprobs_dropped = false; ///< there were some, but not one for each token
  std::vector<weight_span> weight_versions;
  std::string fingerprint;    ///< of the system, where a server tells one
  std::string route = "chat"; ///< how it was asked for; see wire::CompletionResult
};

/// Where a server tells no version of its weights, what it tells of itself stands for one: the
/// fingerprint, for llama.cpp the model's name and, where it is told, its build.
void settle_version(completion_answer& answer, server_kind kind);

/// The content, with the thought put back in front of it inside <think> tags. Without a content,
/// the words of calls of tools, if none were asked for.
std::string full_text(const completion_answer& x);

/// An error as the server describes it; every text printable and at most 500 bytes.
struct server_error {
  std::string message;
  std::string type;
  std::string code;
};

/// Understands {"error":{...}}, {"error":"..."}, SGLang's {"object":"error",...}, FastAPI's
/// {"detail":...}; any other body is quoted from its beginning.
server_error parse_error_body(std::string_view body);

/// True when the server complains that prompt and answer do not fit into the model's context.
bool is_context_overflow(const server_error& x);

/// True when the server says that it was not started for calls of tools.
bool refuses_tools(const server_error& x);

/// True when the server's own parser of tool calls has failed on an answer.
bool spoils_calls(const server_error& x);

/// How many tokens a server that has refused `asked` of them would take, where its words say so.
/// Never as many; nothing of a refusal that has another cause.
std::optional<uint32_t> room_for_answer(const server_error& x, uint32_t asked);

/// A 200 that is no completion: either the server's own error, or bytes that make no sense.
struct bad_answer {
  bool from_server = false;
  server_error error;
  /// A completion is in these bytes, though it cannot be read: what broke it are its words.
  bool of_completion = false;
};

tl::expected<completion_answer, bad_answer> parse_chat_response(std::string_view body);

/// Returns the ids of GET /v1/models; empty when the body is none.
std::vector<std::string> parse_model_list(std::string_view body);

// -- shared with the parser of streams --------------------------------------------------------

/// Adds what one element of `choices` (or its delta, when streamed) brings.
void add_choice(completion_answer& answer, simdjson::dom::element choice, bool streamed);
/// Adds model, usage and prompt token ids, which stand beside `choices`.
void add_frame(completion_answer& answer, simdjson::dom::element frame);
/// Says of words that were mended that they are broken, once all is there.
void settle_words(completion_answer& answer);
/// Makes ids and log-probabilities agree, once all is there.
void settle_tokens(completion_answer& answer);
/// The error that a text reports instead of choices, if it is one.
std::optional<server_error> reported_error(std::string_view text);
/// Whether bytes hold a completion, readable or not.
bool shows_completion(std::string_view text);
/// Why a body that has no `what` is no answer.
bad_answer answer_without(std::string_view body, const std::string& what);

} // namespace kernelmill
