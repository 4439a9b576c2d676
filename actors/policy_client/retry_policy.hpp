#pragma once

// What an attempt's end means: an answer, another attempt, or a failed request, and the class of
// its fault. Pure: no clock, no randomness of its own, no I/O. The budget is the deadline of the
// request, never a number of attempts: a policy server that restarts takes minutes, and a request
// that still has minutes should live through it.
//
// The one place that decides whose doing an answer is. What a model's words have caused is the
// policy's fault and never tried again: a second try would be a second draw. What the server has
// caused is the infrastructure's, and is.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/policy_client/http/http_transport.hpp"
#include "actors/policy_client/protocol/openai_protocol.hpp"

namespace kernelmill {

/// How one attempt ended.
struct attempt_signal {
  transport_fault transport = transport_fault::none;
  std::string detail;           ///< the transport's words
  long status = 0;              ///< 0 when no status line came
  server_error server;          ///< of an error's body, or of an error within a 200
  bool error_within = false;    ///< a 200 that carries the server's error
  bool unreadable = false;      ///< a 200 that is no completion
  bool of_completion = false;   ///< though a completion is in it
  bool tools = false;           ///< it was asked with tools
  bool only_tool_calls = false; ///< a completion that holds calls of tools and no words
  size_t surplus_calls = 0;     ///< calls of a completion that are not kept
  bool broken_text = false;     ///< a completion whose words are no Unicode text
  bool overdue = false;         ///< the request's time was over while the server worked on it
  bool server_works = false;    ///< it has answered something else meanwhile
  uint32_t asked_tokens = 0;    ///< max_tokens of the request; 0: not known
  std::string finish_reason;    ///< of a completion
  std::string retry_after;      ///< the header, as sent
  std::string date;             ///< the header, against which a date in Retry-After is read
  std::string location;         ///< of a redirect
};

/// What earlier attempts have shown.
struct attempt_history {
  bool model_known = false; ///< this server has completed something before
  uint32_t doubtful =
      0; ///< attempts of this request that ended in a signal retried a few times only
};

enum class attempt_action : unsigned char { answer, retry, stop };

struct attempt_decision {
  attempt_action action = attempt_action::answer;
  error fault;                  ///< when not `answer`; the hint says the next step
  bool sick = false;            ///< speaks against the server's health: counts for the circuit
  bool doubtful = false;        ///< counts for attempt_history::doubtful
  bool stops_admission = false; ///< no other request would fare better
  std::optional<uint32_t> max_tokens; ///< of a retry at once: what the context leaves for an answer
  std::optional<std::chrono::milliseconds> retry_after; ///< what the server asked for
};

/// `unix_now` serves dates in Retry-After when the answer has no Date header.
attempt_decision classify(const attempt_signal& x, const attempt_history& history,
                          int64_t unix_now);

/// The decision for a server that cannot give token ids: a run that requires them would else pay
/// for completions that it cannot use.
attempt_decision without_token_ids(const std::string& base_url, const std::string& lacks);

/// Reads seconds or an HTTP date; nothing when the text is neither. Never negative, at most a day.
std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text,
                                                           std::string_view date, int64_t unix_now);

struct backoff_options {
  std::chrono::milliseconds base{500};
  std::chrono::milliseconds cap{30000};
};

/// Full jitter: between 0 and min(cap, base * 2^(failures - 1)), chosen by `random`.
std::chrono::milliseconds backoff(uint32_t failures, uint64_t random, backoff_options options = {});

/// How long to wait before the next attempt; nothing when no attempt would be left before the
/// deadline. A Retry-After is kept to, with up to half a second of jitter on top; a back-off of
/// our own is cut to half of what is left, so that a last attempt always happens.
std::optional<std::chrono::milliseconds> next_wait(const attempt_decision& decision,
                                                   uint32_t failures,
                                                   std::chrono::milliseconds left, uint64_t random,
                                                   backoff_options options = {});

} // namespace kernelmill
