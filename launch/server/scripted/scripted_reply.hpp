#pragma once

// What a scripted server decides and writes, without any I/O: which reply a request gets, which
// fault hits it, and the bytes of the answer. Token ids and log-probabilities are synthetic: a
// token is a word with the blanks before it, its id and log-probability are hashes of it.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/server/scripted/policy_script.hpp"
#include "launch/server/scripted/scripted_vocabulary.hpp"

namespace kernelmill {

/// What a script can match on, and what the answer must contain.
struct scripted_request {
  std::string session; ///< "RUN/g3.e1"; may be empty
  std::string request_id;
  std::string model;
  std::string task; ///< from "[task: ID]" in the first user message; may be empty
  std::optional<uint32_t> member;
  uint32_t turn = 0;       ///< assistant messages so far
  std::string prompt;      ///< all contents, for the count of tokens
  uint32_t max_tokens = 0; ///< 0: no limit
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
  bool token_ids = false;
  bool tools = false; ///< the policy may call some, and calls are read out of its words
  server_kind kind = server_kind::openai;
  bool drift = false;              ///< completions are cut as no tokenizer would cut them
  std::vector<int32_t> prompt_ids; ///< of an engine: what the model sees
  std::string version_before;      ///< of the weights when the request came; empty: not told
  std::string version_after;       ///< when it was answered
};

/// Reads the body of a chat request; `session` is the X-Session-ID header.
expected<scripted_request> read_chat_request(std::string_view body, std::string_view session);

/// Reads "messages" of a body, and in front of them its "tools", as a model sees them all.
expected<std::vector<scripted_message>> read_messages(const nlohmann::json& body);
/// Takes from a conversation what a script can match on.
void note_messages(scripted_request& to, const std::vector<scripted_message>& messages);
/// Takes from a session's name what a script can match on.
void note_session(scripted_request& to, std::string_view session);

/// Returns null when no reply fits.
const scripted_reply* choose_reply(const policy_script& script, const scripted_request& request);

/// Decides which requests a script's faults hit. Not for several threads.
class fault_schedule {
public:
  explicit fault_schedule(const std::vector<scripted_fault>& faults);

  /// Returns the fault that hits this request, or null; the first that fits in script order.
  const scripted_fault* next(const scripted_request& request);

private:
  struct progress {
    uint32_t hits = 0;
    uint32_t without_session = 0;
    std::set<std::tuple<std::string, std::string, uint32_t>> seen; ///< session, task, turn
  };
  bool hits(const scripted_fault& fault, progress& p, const scripted_request& request);

  const std::vector<scripted_fault>& faults_;
  std::vector<progress> progress_;
};

/// Returns the words of a text, each with the blanks before it; together they are the text.
std::vector<std::string_view> synthetic_tokens(std::string_view text);
int32_t synthetic_token_id(std::string_view token);
/// Between -4 and 0.
double synthetic_logprob(std::string_view token);

/// One token of a completion. The mark that ends an engine's completion has no text.
struct sampled_token {
  std::string text;
  int32_t id = 0;
  double logprob = 0; ///< exactly a float of 32 bits where the kind is an engine
};

/// What a reply becomes for a request, its calls of tools as blocks of the text: cut by max_tokens,
/// and ended by a mark as engines do.
struct sampled_reply {
  std::vector<sampled_token> tokens;
  std::string finish_reason;
};
sampled_reply sample(const scripted_request& request, const scripted_reply& reply);
std::string text_of(const sampled_reply& x, size_t first = 0, size_t last = SIZE_MAX);

/// [{"version","start","end"}, ...] of a completion of so many tokens: where the weights changed
/// while it was made, the second half is the new ones'. Null when versions are not told.
nlohmann::json weight_versions(const scripted_request& request, size_t tokens);

/// The answer as one JSON object.
std::string chat_answer(const scripted_request& request, const scripted_reply& reply,
                        const std::string& id, int64_t created);

/// The answer as server-sent events, in order, each with its empty line; [DONE] is the last.
std::vector<std::string> chat_events(const scripted_request& request, const scripted_reply& reply,
                                     const std::string& id, int64_t created);

/// {"error": {...}} as OpenAI writes it.
std::string error_answer(int status, const std::string& message, const std::string& type,
                         const std::string& code);

/// The answer of GET /v1/models.
std::string models_answer(const std::string& model, int64_t created);

} // namespace kernelmill
