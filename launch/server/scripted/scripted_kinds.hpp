#pragma once

// What a scripted server of each kind is asked on the routes that OpenAI's do not have, and what
// it answers: engines that take and give token ids, their tokenizers, templates and versions.
// Plain functions on plain values.

#include <string>
#include <string_view>

#include "launch/server/scripted/scripted_reply.hpp"

namespace kernelmill {

/// The routes that complete something.
enum class scripted_route : unsigned char {
  none,
  chat,             ///< POST /v1/chat/completions, of every kind
  vllm_generate,    ///< POST /inference/v1/generate
  sglang_generate,  ///< POST /generate
  llama_completion, ///< POST /completion
};

scripted_route completion_route(server_kind kind, std::string_view path);

/// Reads a request of any of them; of one with token ids the conversation is read back from them.
expected<scripted_request> read_request(scripted_route route, const policy_script& script,
                                        std::string_view body, std::string_view session);

/// The answer as one JSON object, in the route's own form.
std::string answer_body(scripted_route route, const scripted_request& request,
                        const scripted_reply& reply, const std::string& id, int64_t created);

/// True when a reply that was aborted has this finish reason.
inline constexpr const char* abort_reason = "abort";

/// What a route beside the completions answers; `status` 0: there is no such route.
struct side_answer {
  int status = 0;
  std::string body;
};

/// Routes that depend on nothing but the script: health, versions, tokenizers, templates.
side_answer answer_side_route(const policy_script& script, bool post, std::string_view path,
                              std::string_view body, const std::string& version);

/// Names of the gauges of requests that run and that wait, as the kind's /metrics has them.
struct gauge_names {
  const char* running;
  const char* waiting;
};
gauge_names gauges_of(server_kind kind);

} // namespace kernelmill
