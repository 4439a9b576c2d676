#pragma once

// What the policy client reads from and writes into messages and HTTP: plain functions, so that
// the actor holds nothing but the order of events.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/policy_client/http/http_transport.hpp"
#include "actors/policy_client/http/secret.hpp"
#include "actors/policy_client/protocol/chat_stream.hpp"
#include "actors/policy_client/retry_policy.hpp"
#include "messages/envelope.hpp"
#include "messages/message.hpp"
#include "messages/policy.capnp.h"
#include "messages/run.capnp.h"

namespace kernelmill {

struct request_facts {
  std::string session;
  uint32_t turn = 0;
  uint32_t deadline_ms = 0;
  bool exact_tokens = false;
};

/// Reads all of a request once, so that later reads of the same words cannot fail.
expected<request_facts> open_request(const Message<wire::CompletionRequest>& request);

/// Returns "SESSION.t2.a1", with "-SALT" when there is a salt: new for every attempt, the same in
/// a replay, and readable in the server's log.
std::string attempt_id(const std::string& session, uint32_t turn, uint32_t attempt,
                       const std::string& salt);

/// X-Request-Id, X-Session-ID, X-SMG-Routing-Key and traceparent, free of bytes that no header may
/// hold.
std::vector<std::pair<std::string, std::string>>
attempt_headers(const std::string& session, const std::string& request_id, const envelope& env);

struct attempt_reading {
  attempt_signal signal;
  completion_answer answer; ///< when the signal says so, or what is left of one that broke
  bool understood = false;  ///< a 200 that could be read
};

using completion_parser =
    std::function<tl::expected<completion_answer, bad_answer>(std::string_view body)>;

/// Reads the end of an attempt whose answer came whole.
attempt_reading read_attempt(const http_response& response, const completion_parser& parse);

/// Reads the end of an attempt; `stream` is null when none was asked for.
attempt_reading read_attempt(const http_response& response, chat_stream* stream);

/// What to do about a server whose parser has left an answer without content; empty when there is
/// nothing to do.
std::string swallowed_hint(const completion_answer& answer, server_kind kind);

/// Replaces the key in all texts of an answer: a server may quote the headers that it was sent, and
/// an answer is stored, shown and learned from. Keys of fewer than eight bytes stay: they are
/// words.
void hide(const secret& key, completion_answer& answer);

Message<wire::CompletionResult> completed_result(const completion_answer& answer,
                                                 const std::string& request_id, uint32_t attempts,
                                                 double seconds);
/// `answer` is what came of it, where the policy is at fault.
Message<wire::CompletionResult> failed_result(const error& why, const std::string& request_id,
                                              uint32_t attempts, double seconds,
                                              const completion_answer& answer = {});

/// A request that has been tried without success and goes on.
struct tried_request {
  std::string session;
  std::string state;
  double since = 0; ///< seconds since 1970
  uint32_t attempts = 0;
  std::string last_error;
  double due = 0; ///< until the next attempt, in seconds; 0: it is not backing off
  std::string category;
  std::string hint;
};

/// A request whose answer streams in.
struct streaming_request {
  std::string session;
  size_t bytes = 0; ///< that have come
  std::string tail; ///< their end; empty where it may hold the server's key
};

/// With a child of the actor "policy_request" for each of `tried`, one of the actor "policy_stream"
/// for each of `streaming`, and one of the actor "queue" whose detail is `waiting`
/// (append_waiting() makes such a text).
Message<wire::Snapshot> make_snapshot(const std::string& id, const std::string& state,
                                      const std::string& detail,
                                      const std::vector<std::pair<const char*, double>>& numbers,
                                      const std::vector<tried_request>& tried = {},
                                      const std::string& waiting = {},
                                      const std::vector<streaming_request>& streaming = {});

} // namespace kernelmill
