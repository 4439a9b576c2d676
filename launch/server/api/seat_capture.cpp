#include "launch/server/api/seat_capture.hpp"

#include <charconv>
#include <cmath>

#include "actors/policy_client/protocol/mended_json.hpp"
#include "messages/base/json_depth.hpp"

namespace kernelmill::services {

namespace {

constexpr std::string_view id_prefix = "token_id:";

tl::unexpected<error> bad_seat_request(std::string message, std::string hint = {}) {
  return configuration_error("bad_request", std::move(message), std::move(hint));
}

std::string dumped(const seat_json& x) {
  return x.dump(-1, ' ', false, seat_json::error_handler_t::replace);
}

bool is_true(const seat_json& x, const char* key) {
  return x.contains(key) && x[key].is_boolean() && x[key].get<bool>();
}

/// The member of an object, or null.
const seat_json& at(const seat_json& x, const char* key) {
  static const seat_json none;
  return x.is_object() && x.contains(key) ? x[key] : none;
}

int32_t id_in(std::string_view token) {
  int32_t result = -1;
  if (!token.starts_with(id_prefix)) return result;
  token.remove_prefix(id_prefix.size());
  auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), result);
  return code == std::errc{} && end == token.data() + token.size() ? result : -1;
}

std::vector<int32_t> ids_of(const seat_json& list) {
  std::vector<int32_t> result;
  if (!list.is_array()) return result;
  for (const auto& x : list)
    if (x.is_number_integer()) result.push_back(x.get<int32_t>());
  return result;
}

// /v1/completions has its log-probabilities in lists of their own.
completion_answer completion_of(const seat_json& frame, const seat_json& choice) {
  completion_answer result;
  result.prompt_token_ids = ids_of(at(choice, "prompt_token_ids"));
  if (result.prompt_token_ids.empty())
    result.prompt_token_ids = ids_of(at(frame, "prompt_token_ids"));
  result.token_ids = ids_of(at(choice, "token_ids"));
  if (result.token_ids.empty()) result.token_ids = ids_of(at(choice, "response_token_ids"));
  const auto& logprobs = at(choice, "logprobs");
  bool named = result.token_ids.empty();
  if (const auto& tokens = at(logprobs, "tokens"); named && tokens.is_array())
    for (const auto& x : tokens)
      if (auto id = x.is_string() ? id_in(x.get<std::string>()) : -1; id >= 0)
        result.token_ids.push_back(id);
  if (const auto& values = at(logprobs, "token_logprobs"); values.is_array())
    for (const auto& x : values) result.logprobs.push_back(x.is_number() ? x.get<float>() : NAN);
  return result;
}

std::vector<std::string> tokens_of(const seat_json& logprobs, bool chat) {
  std::vector<std::string> result;
  if (const auto& list = at(logprobs, chat ? "content" : "tokens"); list.is_array())
    for (const auto& x : list) {
      const auto& token = chat ? at(x, "token") : x;
      result.push_back(token.is_string() ? token.get<std::string>() : std::string{});
    }
  return result;
}

// As the policy client reads it: a policy's bytes that its server puts into JSON as they are cost
// no turn.
seat_json answer_in(const std::string& body) {
  if (nests_deeper(body)) return nullptr;
  auto result = seat_json::parse(body, nullptr, false);
  if (!result.is_discarded()) return result;
  auto mended = mended_json(body);
  show_mended(mended);
  return nests_deeper(mended) ? seat_json(nullptr) : seat_json::parse(mended, nullptr, false);
}

std::string flaw_of(const completion_answer& x, const seat_json& frame) {
  if (x.token_ids.empty()) return "the server told no token ids";
  if (x.logprobs.size() != x.token_ids.size())
    return "the server told " + std::to_string(x.token_ids.size()) + " token ids and " +
           std::to_string(x.logprobs.size()) + " log-probabilities";
  for (auto one : x.logprobs)
    if (!std::isfinite(one)) return "the server told a log-probability that is no number";
  const auto& counted = at(at(frame, "usage"), "completion_tokens");
  if (counted.is_number_unsigned() && counted.get<uint64_t>() != x.token_ids.size())
    return "the server counted " + dumped(counted) + " tokens and told the ids of " +
           std::to_string(x.token_ids.size());
  if (x.prompt_token_ids.empty()) return "the server told no ids of the prompt";
  return {};
}

} // namespace

expected<seat_request> read_seat_request(const std::string& body, bool chat, server_kind kind,
                                         const std::string& model) {
  seat_request result;
  result.chat = chat;
  if (nests_deeper(body)) return bad_seat_request("the body nests too deep");
  result.asked = seat_json::parse(body, nullptr, false);
  auto& x = result.asked;
  if (!x.is_object()) return bad_seat_request("the body must be a JSON object");
  if (chat && (!at(x, "messages").is_array() || at(x, "messages").empty()))
    return bad_seat_request("the field \"messages\" must hold a message");
  if (!chat && !x.contains("prompt")) return bad_seat_request("the field \"prompt\" is missing");
  for (const char* key : {"n", "best_of"})
    if (x.contains(key) && x[key] != 1 && !x[key].is_null())
      return bad_seat_request("the field \"" + std::string{key} + "\" must be 1 at a seat",
                              "ask several times: each answer is a row of the trace");
  if (const auto& prompt = at(x, "prompt");
      prompt.is_array() && !prompt.empty() && !prompt.front().is_number())
    return bad_seat_request("the field \"prompt\" must be one prompt at a seat");
  result.stream = is_true(x, "stream");
  result.usage = is_true(at(x, "stream_options"), "include_usage");
  result.ids = is_true(x, "return_token_ids");
  result.logprobs = chat ? is_true(x, "logprobs") : at(x, "logprobs").is_number();
  // The answer is taken whole: vLLM loses ids of streams with calls of tools.
  x.erase("stream");
  x.erase("stream_options");
  if (!model.empty()) x["model"] = model;
  auto sent = x;
  if (chat)
    sent["logprobs"] = true;
  else if (!result.logprobs)
    sent["logprobs"] = 1;
  if (kind == server_kind::vllm || kind == server_kind::sglang) sent["return_token_ids"] = true;
  result.body = dumped(sent);
  return result;
}

expected<seat_row> read_seat_answer(const seat_request& asked, const std::string& body) {
  seat_row result;
  result.request = asked.asked;
  result.response = answer_in(body);
  auto& frame = result.response;
  if (!at(frame, "choices").is_array() || frame["choices"].empty())
    return infrastructure_error("policy_bad_response", "the server's answer has no choices");
  auto& choice = frame["choices"][0];
  if (!asked.chat && at(choice, "text").is_null() && choice.is_object()) choice["text"] = "";
  if (asked.chat ? !at(choice, "message").is_object() : !at(choice, "text").is_string())
    return infrastructure_error("policy_bad_response", "the server's answer is no completion");
  completion_answer answer;
  if (asked.chat) {
    auto parsed = parse_chat_response(body);
    if (!parsed)
      return infrastructure_error("policy_bad_response", "the server's answer is no completion: " +
                                                             parsed.error().error.message);
    answer = std::move(*parsed);
  } else {
    answer = completion_of(frame, choice);
  }
  result.tokens = tokens_of(at(choice, "logprobs"), asked.chat);
  result.flaw = answer.logprobs_dropped ? "the server told other numbers of token ids and of "
                                          "log-probabilities, or not those of every token"
                                        : flaw_of(answer, frame);
  if (!answer.weight_versions.empty()) result.version = answer.weight_versions.back().version;
  result.prompt_ids = std::move(answer.prompt_token_ids);
  result.ids = std::move(answer.token_ids);
  result.logprobs = std::move(answer.logprobs);
  if (result.tokens.size() != result.ids.size()) {
    result.tokens.clear();
    for (auto id : result.ids) result.tokens.push_back(std::string{id_prefix} + std::to_string(id));
  }
  // The agent gets what it asked for.
  if (!asked.ids) {
    frame.erase("prompt_token_ids");
    for (const char* key : {"prompt_token_ids", "token_ids", "response_token_ids"})
      choice.erase(key);
  }
  if (!asked.logprobs) choice["logprobs"] = nullptr;
  result.bytes = body.size() + asked.body.size() + 16 * result.ids.size();
  return result;
}

seat_json trace_row(const seat_row& x) {
  seat_json logprobs = seat_json::array();
  for (auto one : x.logprobs)
    logprobs.push_back(std::isfinite(one) ? seat_json(one) : seat_json(nullptr));
  auto text = [](const std::string& y) { return y.empty() ? seat_json(nullptr) : seat_json(y); };
  return {{"request", x.request},
          {"response", x.response},
          {"completion_token_ids", x.ids},
          {"completion_tokens", x.tokens},
          {"per_token_logps", logprobs},
          {"prompt_token_ids", x.prompt_ids},
          {"weight_version", text(x.version)},
          {"flaw", text(x.flaw)}};
}

std::string seat_events(const seat_request& asked, const seat_json& response) {
  std::string result;
  auto frame = response;
  frame.erase("usage");
  if (asked.chat) frame["object"] = "chat.completion.chunk";
  auto event = [&](const seat_json& choice) {
    frame["choices"] = seat_json::array({choice});
    result += "data: " + dumped(frame) + "\n\n";
  };
  auto choice = response["choices"][0];
  auto finish = at(choice, "finish_reason");
  if (asked.chat) {
    auto delta = choice["message"];
    choice.erase("message");
    if (const auto& calls = at(delta, "tool_calls"); calls.is_array())
      for (size_t i = 0; i < calls.size(); ++i)
        if (calls[i].is_object()) delta["tool_calls"][i]["index"] = i; // a server may send anything
    choice["delta"] = delta;
    choice["finish_reason"] = nullptr;
    event(choice);
    choice["delta"] = seat_json::object();
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = finish;
  }
  event(choice);
  if (asked.usage) {
    frame["choices"] = seat_json::array();
    frame["usage"] = at(response, "usage");
    result += "data: " + dumped(frame) + "\n\n";
  }
  return result + "data: [DONE]\n\n";
}

} // namespace kernelmill::services
