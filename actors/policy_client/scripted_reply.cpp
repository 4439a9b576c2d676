#include "actors/policy_client/scripted_reply.hpp"

#include <nlohmann/json.hpp>

#include "actors/policy_client/json_text.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr size_t tokens_per_event = 8;
constexpr int32_t vocabulary = 50000;

// FNV-1a: the same on every machine, so that scripted runs can be compared byte for byte.
uint64_t hash_of(std::string_view text, uint64_t x = 0xcbf29ce484222325) {
  for (unsigned char c : text) x = (x ^ c) * 0x100000001b3;
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
  return (!match.task || *match.task == request.task) &&
         (!match.member || match.member == request.member);
}

expected<void> read_messages(const json& body, scripted_request& to) {
  auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array() || messages->empty())
    return bad("\"messages\" is not a list of messages");
  bool user_seen = false;
  for (const auto& x : *messages) {
    if (!x.is_object() || !x.contains("role") || !x["role"].is_string() || !x.contains("content") ||
        !x["content"].is_string())
      return bad("a message lacks \"role\" or \"content\"");
    const auto& role = x["role"].get_ref<const std::string&>();
    const auto& content = x["content"].get_ref<const std::string&>();
    if (role == "user" && !user_seen) to.task = task_of(content);
    user_seen = user_seen || role == "user";
    to.turn += role == "assistant" ? 1 : 0;
    to.prompt += content + "\n";
  }
  return {};
}

bool flag(const json& x, const char* key) {
  auto i = x.find(key);
  return i != x.end() && i->is_boolean() && i->get<bool>();
}

} // namespace

expected<scripted_request> read_chat_request(std::string_view text, std::string_view session) {
  auto body = read_json(text);
  if (!body.is_object()) return bad("it is no JSON object");
  scripted_request result;
  result.session = session;
  if (auto name = parse_name(episode_of(session))) result.member = name->member;
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
  if (auto read = read_messages(body, result); !read) return tl::unexpected<error>{read.error()};
  return result;
}

const scripted_reply* choose_reply(const policy_script& script, const scripted_request& request) {
  // Task before member, and within those the turn itself, any turn, the last turn before it.
  using rank = std::tuple<bool, bool, int, uint32_t>;
  const scripted_reply* best = nullptr;
  rank best_rank{};
  for (const auto& x : script.replies) {
    const auto& turn = x.match.turn;
    if (!fits(x.match, request) || (turn && *turn > request.turn)) continue;
    auto closeness = !turn ? 1 : *turn == request.turn ? 2 : 0;
    rank r{x.match.task.has_value(), x.match.member.has_value(), closeness, turn.value_or(0)};
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
      auto draw = hash_of(request.task, hash_of(episode, request.turn + 1));
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
  return static_cast<int32_t>(hash_of(token) % vocabulary);
}

double synthetic_logprob(std::string_view token) {
  return -static_cast<double>(hash_of(token, 7) % 4000) / 1000.0;
}

namespace {

// The part of a reply that max_tokens lets through.
struct cut_reply {
  std::vector<std::string_view> tokens;
  std::string finish_reason;
};

cut_reply cut(const scripted_request& request, const scripted_reply& reply) {
  cut_reply result{synthetic_tokens(reply.text), reply.finish_reason};
  if (request.max_tokens > 0 && result.tokens.size() > request.max_tokens) {
    result.tokens.resize(request.max_tokens);
    result.finish_reason = "length";
  }
  return result;
}

std::string joined(const std::vector<std::string_view>& tokens, size_t first, size_t last) {
  std::string result;
  for (size_t i = first; i < last; ++i) result.append(tokens[i]);
  return result;
}

json ids_of(const std::vector<std::string_view>& tokens, size_t first, size_t last) {
  auto result = json::array();
  for (size_t i = first; i < last; ++i) result.push_back(synthetic_token_id(tokens[i]));
  return result;
}

json logprobs_of(const std::vector<std::string_view>& tokens, size_t first, size_t last) {
  auto content = json::array();
  for (size_t i = first; i < last; ++i)
    content.push_back({{"token", tokens[i]},
                       {"logprob", synthetic_logprob(tokens[i])},
                       {"top_logprobs", json::array()}});
  return {{"content", std::move(content)}};
}

json usage_of(const scripted_request& request, size_t tokens) {
  auto prompt = synthetic_tokens(request.prompt).size();
  return {
      {"prompt_tokens", prompt}, {"completion_tokens", tokens}, {"total_tokens", prompt + tokens}};
}

void add_tokens(json& choice, const scripted_request& request,
                const std::vector<std::string_view>& tokens, size_t first, size_t last) {
  if (request.logprobs) choice["logprobs"] = logprobs_of(tokens, first, last);
  if (request.token_ids) choice["token_ids"] = ids_of(tokens, first, last);
}

json frame_of(const char* object, const scripted_request& request, const std::string& id,
              int64_t created) {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", request.model},
          {"choices", json::array()}};
}

json prompt_ids(const scripted_request& request) {
  auto tokens = synthetic_tokens(request.prompt);
  return ids_of(tokens, 0, tokens.size());
}

} // namespace

std::string chat_answer(const scripted_request& request, const scripted_reply& reply,
                        const std::string& id, int64_t created) {
  auto part = cut(request, reply);
  auto count = part.tokens.size();
  json choice{{"index", 0},
              {"message", {{"role", "assistant"}, {"content", joined(part.tokens, 0, count)}}},
              {"finish_reason", part.finish_reason}};
  add_tokens(choice, request, part.tokens, 0, count);
  auto frame = frame_of("chat.completion", request, id, created);
  frame["choices"].push_back(std::move(choice));
  frame["usage"] = usage_of(request, count);
  if (request.token_ids) frame["prompt_token_ids"] = prompt_ids(request);
  return write_json(frame);
}

std::vector<std::string> chat_events(const scripted_request& request, const scripted_reply& reply,
                                     const std::string& id, int64_t created) {
  auto part = cut(request, reply);
  std::vector<std::string> result;
  auto push = [&](json choice, bool with_prompt) {
    auto frame = frame_of("chat.completion.chunk", request, id, created);
    frame["choices"].push_back(std::move(choice));
    if (with_prompt && request.token_ids) frame["prompt_token_ids"] = prompt_ids(request);
    result.push_back("data: " + write_json(frame) + "\n\n");
  };
  push({{"index", 0},
        {"delta", {{"role", "assistant"}, {"content", ""}}},
        {"finish_reason", nullptr}},
       true);
  for (size_t i = 0; i < part.tokens.size(); i += tokens_per_event) {
    auto last = std::min(i + tokens_per_event, part.tokens.size());
    json choice{{"index", 0},
                {"delta", {{"content", joined(part.tokens, i, last)}}},
                {"finish_reason", nullptr}};
    add_tokens(choice, request, part.tokens, i, last);
    push(std::move(choice), false);
  }
  push({{"index", 0}, {"delta", json::object()}, {"finish_reason", part.finish_reason}}, false);
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
