#include "actors/policy_client/retry_policy.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <curl/curl.h>

#include "actors/policy_client/protocol/text_calls.hpp"

namespace kernelmill {

using std::chrono::milliseconds;

namespace {

constexpr int64_t longest_retry_after_s = 24 * 3600;

// A 415 for a body that is JSON may be a server under stress: one more attempt. A model that
// vanished may be a swap of weights: a few.
constexpr uint32_t doubtful_attempts = 1;
constexpr uint32_t vanished_model_attempts = 4;
constexpr uint32_t refused_attempts = 2;

constexpr auto tools_hint =
    "the request has tools: `kernelmill policy probe` says whether the server takes them and which "
    "of its flags to change; tools.calls=text needs no such server";

attempt_decision stop(fault_class cls, std::string category, std::string message,
                      std::string hint) {
  attempt_decision result;
  result.action = attempt_action::stop;
  result.stops_admission = cls == fault_class::configuration;
  result.fault = {cls, std::move(category), std::move(message), std::move(hint)};
  return result;
}

attempt_decision retry(std::string category, std::string message, std::string hint, bool sick) {
  attempt_decision result;
  result.action = attempt_action::retry;
  result.sick = sick;
  result.fault = {fault_class::infrastructure, std::move(category), std::move(message),
                  std::move(hint)};
  return result;
}

attempt_decision doubt(attempt_decision x) {
  x.doubtful = true;
  return x;
}

std::string said(const attempt_signal& x) {
  auto text = "the policy server answered " + std::to_string(x.status);
  if (x.server.message.empty() && x.server.code.empty()) return text;
  text += ": " + (x.server.message.empty() ? x.server.code : x.server.message);
  return text;
}

// Fewer tokens than these hold no kernel: the conversation has no room for another answer.
uint32_t least_answer(uint32_t asked) {
  constexpr uint32_t enough = 1024;
  return std::min(asked / 4, enough);
}

// 400, 413, 422 and every other 4xx without a rule of its own. A server that has completed other
// requests of this form refuses this one for a reason of its own.
attempt_decision of_bad_request(const attempt_signal& x, const attempt_history& history) {
  auto of_body = x.status == 400 || x.status == 413 || x.status == 422;
  if (auto room = of_body ? room_for_answer(x.server, x.asked_tokens) : std::nullopt;
      room && *room >= least_answer(x.asked_tokens)) {
    auto result = retry("context_overflow", said(x), {}, false);
    result.max_tokens = room;
    return result;
  }
  if (of_body && is_context_overflow(x.server))
    return stop(fault_class::policy, "context_overflow", said(x),
                "use fewer turns, shorter prompts or a model with a longer context");
  if (x.tools && refuses_tools(x.server))
    return stop(fault_class::configuration, "policy_bad_request", said(x), tools_hint);
  if (!history.model_known)
    return stop(fault_class::configuration, "policy_bad_request", said(x),
                x.tools ? tools_hint : "check policy.model, policy.kind and the sampling settings");
  const char* hint = "the server took other requests: look at its log";
  if (history.doubtful >= refused_attempts)
    return stop(fault_class::infrastructure, "policy_bad_request", said(x), hint);
  return doubt(retry("policy_bad_request", said(x), hint, false));
}

attempt_decision of_missing(const attempt_signal& x, const attempt_history& history) {
  if (history.model_known && history.doubtful < vanished_model_attempts)
    return doubt(retry("policy_not_found", said(x), "the model answered before", false));
  return stop(fault_class::configuration, "policy_not_found", said(x),
              "check policy.model and policy.base_url, which usually ends in /v1");
}

attempt_decision of_limit(const attempt_signal& x) {
  // OpenAI's code for an account without money: no back-off helps.
  if (x.server.code == "insufficient_quota" || x.server.type == "insufficient_quota")
    return stop(fault_class::configuration, "policy_billing", said(x),
                "check the plan and the balance of the account");
  return retry("policy_rate_limited", said(x), "lower policy.max_in_flight", false);
}

attempt_decision of_status(const attempt_signal& x, const attempt_history& history) {
  switch (x.status) {
    case 401:
    case 403:
      return stop(fault_class::configuration, "policy_auth", said(x),
                  "check the key that policy.api_key_env or policy.api_key_file names");
    case 402:
      return stop(fault_class::configuration, "policy_billing", said(x),
                  "check the plan and the balance of the account");
    case 404: return of_missing(x, history);
    case 408:
    case 409:
    case 425: return retry("policy_unavailable", said(x), {}, false);
    case 415:
      if (history.doubtful >= doubtful_attempts) return of_bad_request(x, history);
      return doubt(retry("policy_unavailable", said(x), {}, false));
    case 429: return of_limit(x);
    case 501: return of_bad_request(x, history);
    default: break;
  }
  if (x.status >= 500 && x.tools && refuses_tools(x.server)) return of_bad_request(x, history);
  // The server's parser has failed on what the model wrote; the requests before were well.
  if (x.status >= 500 && x.tools && spoils_calls(x.server))
    return stop(fault_class::policy, "bad_tool_call",
                "the server could not read a call of a tool: " + said(x), {});
  if (x.status >= 500)
    return retry("policy_unavailable", said(x), "look at the server's log", true);
  if (x.status >= 300 && x.status < 400)
    return stop(fault_class::configuration, "policy_redirected",
                said(x) + (x.location.empty() ? "" : ", a redirect to " + x.location),
                "put the final address into policy.base_url; redirects are not followed");
  return of_bad_request(x, history);
}

attempt_decision of_transport(const attempt_signal& x, const attempt_history& history) {
  auto text = "failed to reach the policy server: " + x.detail;
  switch (x.transport) {
    case transport_fault::untrusted:
      return stop(fault_class::configuration, "policy_untrusted", text,
                  "name the authority's certificate in policy.ca_file");
    case transport_fault::cancelled:
      return stop(fault_class::infrastructure, "cancelled", "the request was cancelled", {});
    case transport_fault::too_large:
      if (x.status < 200 || x.status > 299) return of_status(x, history);
      return stop(fault_class::policy, "policy_response_too_large",
                  "the answer is longer than is taken: " + x.detail,
                  "lower policy.sampling.max_tokens or raise policy.max_response_bytes");
    case transport_fault::unresolved:
    case transport_fault::refused:
    case transport_fault::connect_timeout:
      return retry("policy_unreachable", text, "start the server, or correct policy.base_url",
                   true);
    case transport_fault::truncated:
    case transport_fault::malformed:
      return retry("policy_bad_response", "failed to read the policy server's answer: " + x.detail,
                   "check that policy.base_url names an OpenAI-compatible server", true);
    case transport_fault::timeout:
    case transport_fault::stalled:
      return retry("policy_timeout", "failed to wait for the policy server: " + x.detail,
                   "raise policy.timeout_ms, or look at the server's load", true);
    default: return retry("policy_connection_lost", text, "look at the server's log", true);
  }
}

// An error inside a 200. Servers put the status that they would have sent into `code`.
attempt_decision of_error_within(const attempt_signal& x, const attempt_history& history) {
  int code = 0;
  auto [end, status] =
      std::from_chars(x.server.code.data(), x.server.code.data() + x.server.code.size(), code);
  if (status == std::errc{} && *end == '\0' && code >= 400 && code <= 599) {
    auto inner = x;
    inner.status = code;
    inner.error_within = false;
    return of_status(inner, history);
  }
  if (is_context_overflow(x.server)) {
    auto inner = x;
    inner.status = 400;
    return of_bad_request(inner, history);
  }
  return retry("policy_aborted", "the policy server failed within its answer: " + x.server.message,
               "look at the server's log", true);
}

// An answer that a model has spoiled.
attempt_decision spoiled(std::string category, std::string message, std::string hint = {}) {
  return stop(fault_class::policy, std::move(category), std::move(message), std::move(hint));
}

// The server took the request and was well all the time, so it was the answer that took so long.
attempt_decision of_overdue(const attempt_signal& x) {
  if (x.server_works)
    return spoiled("answer_overdue", "the answer was not complete within " + x.detail,
                   "lower policy.sampling.max_tokens or raise policy.timeout_ms");
  return stop(fault_class::infrastructure, "policy_timeout",
              "failed to wait for the policy server: no answer within " + x.detail,
              "raise policy.timeout_ms, or look at the server's load");
}

attempt_decision decide(const attempt_signal& x, const attempt_history& history) {
  if (x.overdue) return of_overdue(x);
  if (x.error_within) return of_error_within(x, history);
  if (x.unreadable && x.of_completion)
    return spoiled("answer_unreadable", "the answer cannot be read: " + x.server.message,
                   "look at what the server makes of such words");
  if (x.unreadable)
    return retry("policy_bad_response",
                 "failed to read the policy server's answer: " + x.server.message,
                 "check that policy.base_url names an OpenAI-compatible server", true);
  if (x.transport != transport_fault::none) return of_transport(x, history);
  if (x.status < 200 || x.status > 299) return of_status(x, history);
  if (x.finish_reason == "abort" || x.finish_reason == "error")
    return retry("policy_aborted",
                 "the policy server ended the completion with \"" + x.finish_reason + "\"",
                 "the server may be swapping weights or out of memory", false);
  if (x.tools && x.surplus_calls > 0)
    return spoiled("too_many_calls",
                   "the answer has " + std::to_string(max_tool_calls + x.surplus_calls) +
                       " calls of tools, and at most " + std::to_string(max_tool_calls) +
                       " are taken",
                   "make fewer calls in one answer");
  if (x.only_tool_calls && !x.tools)
    return spoiled("policy_tool_calls",
                   "the answer is a call of a tool and has no text; there are no tools here",
                   "start the server without a parser of tool calls (vLLM: without "
                   "--enable-auto-tool-choice)");
  if (x.broken_text)
    return spoiled("answer_not_text", "the answer holds bytes that are no Unicode text",
                   "U+FFFD stands for them in the record");
  return {};
}

} // namespace

attempt_decision classify(const attempt_signal& x, const attempt_history& history,
                          int64_t unix_now) {
  auto result = decide(x, history);
  if (result.action == attempt_action::retry)
    result.retry_after = parse_retry_after(x.retry_after, x.date, unix_now);
  return result;
}

attempt_decision without_token_ids(const std::string& base_url, const std::string& lacks) {
  return stop(fault_class::configuration, "policy_no_tokens",
              "policy.tokens is exact, but " + lacks,
              "`kernelmill policy probe " + base_url +
                  "` shows what it lacks: take an engine that has it, or policy.tokens=chat");
}

std::optional<milliseconds> parse_retry_after(std::string_view text, std::string_view date,
                                              int64_t unix_now) {
  if (text.empty()) return std::nullopt;
  int64_t seconds = 0;
  auto* last = text.data() + text.size();
  auto [end, status] = std::from_chars(text.data(), last, seconds);
  if (status == std::errc::result_out_of_range) return std::chrono::seconds{longest_retry_after_s};
  // Some servers send "1.5"; what follows the point is rounded up.
  auto fraction = status == std::errc{} && end != last && *end == '.';
  if (status != std::errc{} || (end != last && !fraction)) {
    auto then = curl_getdate(std::string{text}.c_str(), nullptr);
    if (then < 0) return std::nullopt;
    auto sent = date.empty() ? -1 : curl_getdate(std::string{date}.c_str(), nullptr);
    seconds = static_cast<int64_t>(then) - (sent < 0 ? unix_now : static_cast<int64_t>(sent));
  }
  if (fraction) ++seconds;
  return std::chrono::seconds{std::clamp<int64_t>(seconds, 0, longest_retry_after_s)};
}

milliseconds backoff(uint32_t failures, uint64_t random, backoff_options options) {
  auto doublings = std::min<uint32_t>(failures == 0 ? 0 : failures - 1, 20);
  auto ceiling = std::min(options.cap, options.base * (int64_t{1} << doublings));
  return milliseconds{random % static_cast<uint64_t>(ceiling.count() + 1)};
}

std::optional<milliseconds> next_wait(const attempt_decision& decision, uint32_t failures,
                                      milliseconds left, uint64_t random, backoff_options options) {
  constexpr milliseconds shortest{100};
  constexpr uint64_t retry_after_jitter_ms = 500;
  if (left < shortest) return std::nullopt;
  if (decision.retry_after) {
    // More jitter than the rest of the deadline would turn a possible attempt into none.
    auto wait = *decision.retry_after;
    if (wait + shortest > left) return std::nullopt;
    auto room = std::min<uint64_t>(retry_after_jitter_ms,
                                   static_cast<uint64_t>((left - wait - shortest).count()));
    return wait + milliseconds{random % (room + 1)};
  }
  return std::min(backoff(failures, random, options), left / 2);
}

} // namespace kernelmill
