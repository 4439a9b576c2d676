#include "launch/server/scripted/scripted_reply.hpp"

#include "actors/policy_client/protocol/json_text.hpp"
#include "launch/server/scripted/scripted_calls.hpp"
#include "messages/base/hash.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr size_t tokens_per_event = 8;
constexpr int32_t word_count = 50000;

// The same on every machine, so that scripted runs can be compared byte for byte.
uint64_t draw_of(std::string_view text, uint64_t x = hash_start) {
  x = hash_of(text, x);
  return x ^ (x >> 29);
}

tl::unexpected<error> bad(std::string cause) {
  return policy_error("bad_request", "failed to read the chat request: " + std::move(cause));
}

// "[task: native/row_sum]\n..." gives "native/row_sum".
std::string task_of(std::string_view content) {
  constexpr std::string_view opening = "[task:";
  auto line = content.substr(0, content.find('\n'));
  auto first = line.find(opening);
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first + opening.size());
  auto end = line.find(']');
  if (end == std::string_view::npos) return {};
  line = line.substr(0, end);
  while (line.starts_with(' ')) line.remove_prefix(1);
  while (line.ends_with(' ')) line.remove_suffix(1);
  return std::string{line};
}

// "RUN/g3.e1" gives "g3.e1": the name of a run says nothing about its content.
std::string_view episode_of(std::string_view session) {
  auto slash = session.rfind('/');
  return slash == std::string_view::npos ? session : session.substr(slash + 1);
}

bool fits(const script_match& match, const scripted_request& request) {
  return (!match.prompt || request.prompt.find(*match.prompt) != std::string::npos) &&
         (!match.task || *match.task == request.task) &&
         (!match.member || match.member == request.member);
}

bool flag(const json& x, const char* key) {
  auto i = x.find(key);
  return i != x.end() && i->is_boolean() && i->get<bool>();
}

} // namespace

expected<std::vector<scripted_message>> read_messages(const json& body) {
  auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array() || messages->empty())
    return bad("\"messages\" is not a list of messages");
  std::vector<scripted_message> result;
  if (offers_tools(body))
    result.push_back({"tools", body["tools"].dump(-1, ' ', false, json::error_handler_t::replace)});
  for (const auto& x : *messages) {
    auto calls = x.is_object() && x.contains("tool_calls") && x["tool_calls"].is_array();
    if (!x.is_object() || !x.contains("role") || !x["role"].is_string() ||
        !(calls || (x.contains("content") && x["content"].is_string())))
      return bad("a message lacks \"role\" or \"content\"");
    if (x["role"] == "tool" && text_in(x, "tool_call_id").empty())
      return bad("a message of a tool lacks \"tool_call_id\"");
    auto content = text_in(x, "content");
    if (calls) {
      auto made = calls_of_message(x);
      KM_TRY(made);
      content = sampled_text(content, *made);
    }
    result.push_back({x["role"].get<std::string>(), std::move(content)});
  }
  return result;
}

void note_messages(scripted_request& to, const std::vector<scripted_message>& messages) {
  bool user_seen = false;
  for (const auto& x : messages) {
    if (x.role == "user" && !user_seen) to.task = task_of(x.content);
    user_seen = user_seen || x.role == "user";
    to.turn += x.role == "assistant" ? 1 : 0;
    to.prompt += x.content + "\n";
  }
}

void note_session(scripted_request& to, std::string_view session) {
  to.session = session;
  if (auto name = parse_name(episode_of(session))) to.member = name->member;
}

expected<scripted_request> read_chat_request(std::string_view text, std::string_view session) {
  auto body = read_json(text);
  if (!body.is_object()) return bad("it is no JSON object");
  scripted_request result;
  note_session(result, session);
  if (body.contains("model") && body["model"].is_string())
    result.model = body["model"].get<std::string>();
  for (const auto* key : {"max_tokens", "max_completion_tokens"})
    if (auto i = body.find(key); i != body.end() && i->is_number_unsigned())
      result.max_tokens = static_cast<uint32_t>(std::min<uint64_t>(i->get<uint64_t>(), 1u << 30));
  result.stream = flag(body, "stream");
  if (auto i = body.find("stream_options"); i != body.end() && i->is_object())
    result.include_usage = flag(*i, "include_usage");
  result.logprobs = flag(body, "logprobs");
  result.token_ids = flag(body, "return_token_ids");
  result.tools = offers_tools(body) && text_in(body, "tool_choice") != "none";
  auto messages = read_messages(body);
  KM_TRY(messages);
  note_messages(result, *messages);
  return result;
}

const scripted_reply* choose_reply(const policy_script& script, const scripted_request& request) {
  // The prompt before task and member; then the turn itself, any turn, the last turn before it.
  using rank = std::tuple<bool, bool, bool, int, uint32_t>;
  const scripted_reply* best = nullptr;
  rank best_rank{};
  for (const auto& x : script.replies) {
    const auto& turn = x.match.turn;
    if (!fits(x.match, request) || (turn && *turn > request.turn)) continue;
    auto closeness = !turn ? 1 : *turn == request.turn ? 2 : 0;
    rank r{x.match.prompt.has_value(), x.match.task.has_value(), x.match.member.has_value(),
           closeness, turn.value_or(0)};
    if (best != nullptr && r <= best_rank) continue;
    best = &x;
    best_rank = r;
  }
  return best;
}

// -- faults -----------------------------------------------------------------------------------

fault_schedule::fault_schedule(const std::vector<scripted_fault>& faults)
    : faults_(faults), progress_(faults.size()) {
  // nop
}

const scripted_fault* fault_schedule::next(const scripted_request& request) {
  for (size_t i = 0; i < faults_.size(); ++i)
    if (hits(faults_[i], progress_[i], request)) return &faults_[i];
  return nullptr;
}

bool fault_schedule::hits(const scripted_fault& fault, progress& p,
                          const scripted_request& request) {
  if (!fits(fault.match, request) || (fault.match.turn && *fault.match.turn != request.turn))
    return false;
  if (fault.times > 0 && p.hits >= fault.times) return false;
  if (fault.every > 0) {
    if (request.session.empty()) {
      if (++p.without_session % fault.every != 0) return false;
    } else {
      auto episode = std::string{episode_of(request.session)};
      auto draw = draw_of(request.task, draw_of(episode, request.turn + 1));
      if (draw % fault.every != 0) return false;
      if (!p.seen.emplace(request.session, request.task, request.turn).second) return false;
    }
  }
  ++p.hits;
  return true;
}

// -- tokens -----------------------------------------------------------------------------------

std::vector<std::string_view> synthetic_tokens(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  std::vector<std::string_view> result;
  result.reserve(text.size() / 4);
  for (size_t first = 0, end = 0; first < text.size(); first = end) {
    while (end < text.size() && blank(text[end])) ++end;
    while (end < text.size() && !blank(text[end])) ++end;
    result.push_back(text.substr(first, end - first));
  }
  return result;
}

int32_t synthetic_token_id(std::string_view token) {
  return static_cast<int32_t>(draw_of(token) % word_count);
}

double synthetic_logprob(std::string_view token) {
  return -static_cast<double>(draw_of(token, 7) % 4000) / 1000.0;
}

sampled_reply sample(const scripted_request& request, const scripted_reply& reply) {
  sampled_reply result{{}, reply.finish_reason};
  auto text = sampled_text(reply.text, reply.calls);
  if (request.kind == server_kind::openai) {
    for (auto word : synthetic_tokens(text))
      result.tokens.push_back(
          {std::string{word}, synthetic_token_id(word), synthetic_logprob(word)});
  } else {
    auto how = request.drift ? vocabulary::cut::sampled : vocabulary::cut::canonical;
    for (auto id : vocabulary::encode(text, how)) {
      auto piece = vocabulary::decode(id);
      result.tokens.push_back({piece, id, static_cast<float>(synthetic_logprob(piece) / 3)});
    }
    if (reply.finish_reason == "stop") result.tokens.push_back({{}, vocabulary::message_end, 0});
  }
  if (request.max_tokens > 0 && result.tokens.size() > request.max_tokens) {
    result.tokens.resize(request.max_tokens);
    result.finish_reason = "length";
  }
  return result;
}

std::string text_of(const sampled_reply& x, size_t first, size_t last) {
  std::string result;
  for (size_t i = first; i < std::min(last, x.tokens.size()); ++i) result += x.tokens[i].text;
  return result;
}

json weight_versions(const scripted_request& request, size_t tokens) {
  if (request.version_after.empty()) return nullptr;
  auto span = [](const std::string& version, size_t start, size_t end) {
    return json{{"version", version}, {"start", start}, {"end", end}};
  };
  if (request.version_before == request.version_after || tokens < 2)
    return json::array({span(request.version_after, 0, tokens)});
  return json::array({span(request.version_before, 0, tokens / 2),
                      span(request.version_after, tokens / 2, tokens)});
}

namespace {

json ids_of(const sampled_reply& x, size_t first, size_t last) {
  auto result = json::array();
  for (size_t i = first; i < last; ++i) result.push_back(x.tokens[i].id);
  return result;
}

json logprobs_of(server_kind kind, const sampled_reply& x, size_t first, size_t last) {
  auto content = json::array();
  for (size_t i = first; i < last; ++i) {
    content.push_back({{"token", x.tokens[i].text},
                       {"logprob", x.tokens[i].logprob},
                       {"top_logprobs", json::array()}});
    if (kind == server_kind::llamacpp) content.back()["id"] = x.tokens[i].id;
  }
  return {{"content", std::move(content)}};
}

json usage_of(const scripted_request& request, size_t tokens) {
  auto prompt = request.prompt_ids.empty() ? synthetic_tokens(request.prompt).size()
                                           : request.prompt_ids.size();
  return {
      {"prompt_tokens", prompt}, {"completion_tokens", tokens}, {"total_tokens", prompt + tokens}};
}

void add_tokens(json& choice, const scripted_request& request, const sampled_reply& x, size_t first,
                size_t last) {
  if (request.logprobs) choice["logprobs"] = logprobs_of(request.kind, x, first, last);
  if (request.token_ids)
    choice[request.kind == server_kind::sglang ? "response_token_ids" : "token_ids"] =
        ids_of(x, first, last);
}

// Each kind tells the version of its weights where its own clients look for it.
void add_versions(json& frame, json& choice, const scripted_request& request, size_t tokens) {
  auto versions = weight_versions(request, tokens);
  if (versions.is_null()) return;
  switch (request.kind) {
    case server_kind::vllm: choice["weight_versions"] = std::move(versions); break;
    case server_kind::sglang:
      frame["metadata"] = {{"weight_version", request.version_after}};
      break;
    case server_kind::openai:
    case server_kind::llamacpp: frame["system_fingerprint"] = request.version_after; break;
  }
}

json frame_of(const char* object, const scripted_request& request, const std::string& id,
              int64_t created) {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", request.model},
          {"choices", json::array()}};
}

std::string finish_of(const sampled_reply& sampled, const json& calls) {
  return sampled.finish_reason == "stop" && !calls.empty() ? "tool_calls" : sampled.finish_reason;
}

json prompt_ids(const scripted_request& request) {
  if (!request.prompt_ids.empty()) return request.prompt_ids;
  auto result = json::array();
  for (auto word : synthetic_tokens(request.prompt)) result.push_back(synthetic_token_id(word));
  return result;
}

} // namespace

std::string chat_answer(const scripted_request& request, const scripted_reply& reply,
                        const std::string& id, int64_t created) {
  auto part = sample(request, reply);
  auto count = part.tokens.size();
  auto calls = calls_of_answer(request, reply, part);
  json message{{"role", "assistant"}, {"content", calls.empty() ? text_of(part) : reply.text}};
  if (!calls.empty() && reply.text.empty()) message["content"] = nullptr;
  auto finish = finish_of(part, calls);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  json choice{{"index", 0}, {"message", std::move(message)}, {"finish_reason", finish}};
  add_tokens(choice, request, part, 0, count);
  bool within = request.kind == server_kind::sglang;
  if (request.token_ids && within) choice["prompt_token_ids"] = prompt_ids(request);
  auto frame = frame_of("chat.completion", request, id, created);
  add_versions(frame, choice, request, count);
  frame["choices"].push_back(std::move(choice));
  frame["usage"] = usage_of(request, count);
  if (request.token_ids && !within) frame["prompt_token_ids"] = prompt_ids(request);
  return write_json(frame);
}

std::vector<std::string> chat_events(const scripted_request& request, const scripted_reply& reply,
                                     const std::string& id, int64_t created) {
  auto part = sample(request, reply);
  std::vector<std::string> result;
  auto push = [&](json choice, bool with_prompt, bool with_versions = false) {
    auto frame = frame_of("chat.completion.chunk", request, id, created);
    if (with_versions) add_versions(frame, choice, request, part.tokens.size());
    frame["choices"].push_back(std::move(choice));
    if (with_prompt && request.token_ids) frame["prompt_token_ids"] = prompt_ids(request);
    result.push_back("data: " + write_json(frame) + "\n\n");
  };
  push({{"index", 0},
        {"delta", {{"role", "assistant"}, {"content", ""}}},
        {"finish_reason", nullptr}},
       true);
  auto calls = calls_of_answer(request, reply, part);
  // What becomes calls is held back, and its tokens are told without it.
  auto words_left = calls.empty() ? std::string::npos : reply.text.size();
  for (size_t i = 0; i < part.tokens.size(); i += tokens_per_event) {
    auto last = std::min(i + tokens_per_event, part.tokens.size());
    auto words = text_of(part, i, last).substr(0, words_left);
    if (!calls.empty()) words_left -= words.size();
    json choice{{"index", 0}, {"delta", {{"content", words}}}, {"finish_reason", nullptr}};
    add_tokens(choice, request, part, i, last);
    push(std::move(choice), false);
  }
  for (auto& delta : call_deltas(calls))
    push({{"index", 0}, {"delta", std::move(delta)}, {"finish_reason", nullptr}}, false);
  push({{"index", 0}, {"delta", json::object()}, {"finish_reason", finish_of(part, calls)}}, false,
       true);
  if (request.include_usage) {
    auto frame = frame_of("chat.completion.chunk", request, id, created);
    frame["usage"] = usage_of(request, part.tokens.size());
    result.push_back("data: " + write_json(frame) + "\n\n");
  }
  result.push_back("data: [DONE]\n\n");
  return result;
}

std::string error_answer(int status, const std::string& message, const std::string& type,
                         const std::string& code) {
  json error{{"message", message}, {"type", type}, {"param", nullptr}};
  if (code.empty())
    error["code"] = status;
  else
    error["code"] = code;
  return write_json({{"error", std::move(error)}});
}

std::string models_answer(const std::string& model, int64_t created) {
  return write_json(
      {{"object", "list"},
       {"data",
        {{{"id", model}, {"object", "model"}, {"created", created}, {"owned_by", "kernelmill"}}}}});
}

} // namespace kernelmill
