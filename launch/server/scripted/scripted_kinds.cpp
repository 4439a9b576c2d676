#include "launch/server/scripted/scripted_kinds.hpp"

#include <algorithm>
#include <cmath>

#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

std::string dump(const json& x) {
  return x.dump(-1, ' ', false, json::error_handler_t::replace);
}

tl::unexpected<error> bad_tokens(std::string cause) {
  return policy_error("bad_request", "failed to read the request: " + std::move(cause));
}

// In the words of servers that lack a parser of calls.
tl::unexpected<error> refused_tools(server_kind kind) {
  const char* words = "tools are not supported";
  if (kind == server_kind::vllm)
    words =
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
  if (kind == server_kind::llamacpp) words = "tools param requires --jinja flag";
  return policy_error("bad_request", words);
}

const json& member(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  auto i = object.find(key);
  return i == object.end() ? none : *i;
}

uint32_t limit_of(const json& x) {
  if (!x.is_number_integer() || x.get<int64_t>() <= 0) return 0;
  return static_cast<uint32_t>(std::min<int64_t>(x.get<int64_t>(), 1 << 30));
}

bool is_true(const json& x) {
  return x.is_boolean() && x.get<bool>();
}

expected<std::vector<int32_t>> ids_in(const json& x) {
  if (!x.is_array() || x.empty()) return bad_tokens("there are no token ids");
  std::vector<int32_t> result;
  for (const auto& id : x) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > vocabulary::message_end)
      return bad_tokens("a token id is not in the vocabulary");
    result.push_back(id.get<int32_t>());
  }
  return result;
}

json tokens_answer(const std::vector<int32_t>& ids) {
  return {{"count", ids.size()}, {"max_model_len", 1 << 20}, {"tokens", ids}};
}

} // namespace

scripted_route completion_route(server_kind kind, std::string_view path) {
  if (path == "/v1/chat/completions") return scripted_route::chat;
  if (kind == server_kind::vllm && path == "/inference/v1/generate")
    return scripted_route::vllm_generate;
  if (kind == server_kind::sglang && path == "/generate") return scripted_route::sglang_generate;
  if (kind == server_kind::llamacpp && path == "/completion")
    return scripted_route::llama_completion;
  return scripted_route::none;
}

// -- requests ---------------------------------------------------------------------------------

namespace {

expected<std::vector<int32_t>> prompt_of(scripted_route route, const json& body) {
  if (route == scripted_route::vllm_generate) return ids_in(member(body, "token_ids"));
  const auto& ids = member(body, route == scripted_route::sglang_generate ? "input_ids" : "prompt");
  if (ids.is_array()) return ids_in(ids);
  const auto& text = route == scripted_route::sglang_generate ? member(body, "text") : ids;
  if (!text.is_string()) return bad_tokens("there is no prompt");
  return vocabulary::encode_with_marks(text.get<std::string>());
}

void read_sampling(scripted_route route, const json& body, scripted_request& to) {
  const auto& sampling = member(body, "sampling_params");
  switch (route) {
    case scripted_route::vllm_generate:
      to.max_tokens = limit_of(member(sampling, "max_tokens"));
      to.logprobs = member(sampling, "logprobs").is_number();
      break;
    case scripted_route::sglang_generate:
      to.max_tokens = limit_of(member(sampling, "max_new_tokens"));
      to.logprobs = is_true(member(body, "return_logprob"));
      if (auto rid = text_in(body, "rid"); !rid.empty()) to.request_id = rid;
      break;
    default:
      to.max_tokens = limit_of(member(body, "n_predict"));
      to.logprobs = limit_of(member(body, "n_probs")) > 0;
      break;
  }
}

} // namespace

expected<scripted_request> read_request(scripted_route route, const policy_script& script,
                                        std::string_view text, std::string_view session) {
  auto body = json::parse(text, nullptr, false);
  if (route == scripted_route::chat) {
    auto result = read_chat_request(text, session);
    if (!result) return result;
    result->kind = script.kind;
    if (script.kind == server_kind::sglang && result->stream && result->token_ids)
      return bad_tokens("return_token_ids is not supported with streaming");
    if (result->tools && !script.tools) {
      if (script.kind != server_kind::sglang) return refused_tools(script.kind);
      result->tools = false; // it leaves the calls in the text
    }
    result->drift = script.drift;
    if (script.kind == server_kind::openai) return result;
    auto messages = read_messages(body);
    result->prompt_ids = vocabulary::render(*messages, true, script.strip_thoughts);
    return result;
  }
  if (!body.is_object()) return bad_tokens("it is no JSON object");
  if (is_true(member(body, "stream"))) return bad_tokens("this route is not streamed here");
  auto prompt = prompt_of(route, body);
  KM_TRY(prompt);
  scripted_request result;
  note_session(result, session);
  note_messages(result, vocabulary::messages_in(*prompt));
  result.prompt_ids = std::move(*prompt);
  result.model = text_in(body, "model");
  if (result.model.empty()) result.model = script.model; // these routes need none
  result.kind = script.kind;
  result.drift = script.drift;
  result.token_ids = true;
  read_sampling(route, body, result);
  return result;
}

// -- answers ----------------------------------------------------------------------------------

namespace {

json ids_of(const sampled_reply& x) {
  auto result = json::array();
  for (const auto& token : x.tokens) result.push_back(token.id);
  return result;
}

json vllm_answer(const scripted_request& request, const sampled_reply& x, const std::string& id) {
  json choice{{"index", 0}, {"finish_reason", x.finish_reason}, {"token_ids", ids_of(x)}};
  if (request.logprobs) {
    auto content = json::array();
    for (const auto& token : x.tokens)
      content.push_back({{"token", "token_id:" + std::to_string(token.id)},
                         {"token_id", token.id}, // its name since 0.33
                         {"logprob", token.logprob},
                         {"top_logprobs", json::array()}});
    choice["logprobs"] = {{"content", std::move(content)}};
  }
  if (auto versions = weight_versions(request, x.tokens.size()); !versions.is_null())
    choice["weight_versions"] = std::move(versions);
  return {{"request_id", id}, {"choices", json::array({std::move(choice)})}};
}

json sglang_finish(const sampled_reply& x) {
  json result{{"type", x.finish_reason}};
  if (x.finish_reason == "length") result["length"] = x.tokens.size();
  if (x.finish_reason == "stop") result["matched"] = vocabulary::message_end;
  if (x.finish_reason == abort_reason) result["message"] = "Aborted by the script";
  return result;
}

json sglang_answer(const scripted_request& request, const sampled_reply& x, const std::string& id) {
  json meta{{"id", id},
            {"finish_reason", sglang_finish(x)},
            {"prompt_tokens", request.prompt_ids.size()},
            {"completion_tokens", x.tokens.size()}};
  if (request.logprobs) {
    auto& list = meta["output_token_logprobs"] = json::array();
    for (const auto& token : x.tokens)
      list.push_back(json::array({token.logprob, token.id, nullptr}));
  }
  if (auto versions = weight_versions(request, x.tokens.size()); !versions.is_null()) {
    meta["weight_version"] = request.version_after;
    meta["weight_versions"] = std::move(versions);
  }
  return {{"text", text_of(x)}, {"output_ids", ids_of(x)}, {"meta_info", std::move(meta)}};
}

json llama_answer(const scripted_request& request, const sampled_reply& x) {
  json result{{"content", text_of(x)},
              {"tokens", ids_of(x)},
              {"stop", true},
              {"stop_type", x.finish_reason == "length" ? "limit" : "eos"},
              {"model", request.model},
              {"tokens_evaluated", request.prompt_ids.size()},
              {"tokens_predicted", x.tokens.size()},
              {"truncated", false}};
  if (request.logprobs) {
    auto& list = result["completion_probabilities"] = json::array();
    for (const auto& token : x.tokens)
      list.push_back({{"id", token.id}, {"token", token.text}, {"logprob", token.logprob}});
  }
  return result;
}

} // namespace

std::string answer_body(scripted_route route, const scripted_request& request,
                        const scripted_reply& reply, const std::string& id, int64_t created) {
  switch (route) {
    case scripted_route::vllm_generate:
      return dump(vllm_answer(request, sample(request, reply), id));
    case scripted_route::sglang_generate:
      return dump(sglang_answer(request, sample(request, reply), id));
    case scripted_route::llama_completion:
      return dump(llama_answer(request, sample(request, reply)));
    default: return chat_answer(request, reply, id, created);
  }
}

// -- beside the completions -------------------------------------------------------------------

namespace {

side_answer refused(int status, const std::string& message) {
  return {status, error_answer(status, message, "invalid_request_error", "")};
}

expected<std::vector<int32_t>> rendered(const policy_script& script, const json& body) {
  auto messages = read_messages(body);
  KM_TRY(messages);
  const auto& wanted = member(body, "add_generation_prompt");
  auto prompt = !wanted.is_boolean() || wanted.get<bool>();
  return vocabulary::render(*messages, prompt, script.strip_thoughts);
}

// `text_key` is the kind's word for a text without roles.
side_answer tokenize(const policy_script& script, const json& body, const char* text_key) {
  if (const auto& text = member(body, text_key); text.is_string()) {
    auto marks = script.kind != server_kind::llamacpp || is_true(member(body, "parse_special"));
    auto plain = text.get<std::string>();
    return {200, dump(tokens_answer(marks ? vocabulary::encode_with_marks(plain)
                                          : vocabulary::encode(plain)))};
  }
  if (!script.renders) return refused(422, "Field required: prompt");
  auto ids = rendered(script, body);
  if (!ids) return refused(400, ids.error().message);
  return {200, dump(tokens_answer(*ids))};
}

// `skips_marks`: what the kind does unless it is told otherwise.
side_answer detokenize(const json& body, const char* text_key, bool skips_marks) {
  auto ids = ids_in(member(body, "tokens"));
  if (!ids) return refused(400, ids.error().message);
  if (skips_marks) std::erase_if(*ids, [](auto id) { return id >= vocabulary::message_start; });
  return {200, dump({{text_key, vocabulary::decode(*ids)}})};
}

side_answer vllm_route(const policy_script& script, bool post, std::string_view path,
                       const json& body) {
  if (!post && path == "/version") return {200, dump({{"version", "0.0.0+scripted"}})};
  if (post && path == "/tokenize") return tokenize(script, body, "prompt");
  if (post && path == "/detokenize") return detokenize(body, "prompt", false);
  if (!post || path != "/v1/chat/completions/render" || !script.renders) return {};
  auto ids = rendered(script, body);
  if (!ids) return refused(400, ids.error().message);
  return {200, dump({{"token_ids", *ids}, {"model", script.model}})};
}

side_answer sglang_route(const policy_script& script, bool post, std::string_view path,
                         const json& body, const std::string& version) {
  if (!post && path == "/health_generate") return {200, ""};
  if (!post && (path == "/get_model_info" || path == "/model_info"))
    return {200, dump({{"model_path", script.model}, {"weight_version", version}})};
  if (!post && (path == "/get_server_info" || path == "/server_info"))
    return {200, dump({{"version", "0.0.0+scripted"}, {"weight_version", version}})};
  if (post && (path == "/v1/tokenize" || path == "/tokenize"))
    return tokenize(script, body, "prompt");
  if (post && (path == "/v1/detokenize" || path == "/detokenize"))
    return detokenize(body, "text", true);
  return {};
}

side_answer llama_route(const policy_script& script, bool post, std::string_view path,
                        const json& body) {
  if (!post && path == "/props")
    return {200, dump({{"total_slots", 64},
                       {"model_path", script.model},
                       {"build_info", "b0-scripted"},
                       {"default_generation_settings", {{"n_ctx", 1 << 20}}}})};
  if (post && path == "/tokenize") return tokenize(script, body, "content");
  if (post && path == "/detokenize") return detokenize(body, "content", false);
  if (!post || path != "/apply-template") return {};
  auto ids = rendered(script, body);
  if (!ids) return refused(400, ids.error().message);
  return {200, dump({{"prompt", vocabulary::decode(*ids)}})};
}

} // namespace

side_answer answer_side_route(const policy_script& script, bool post, std::string_view path,
                              std::string_view text, const std::string& version) {
  auto body = json::parse(text, nullptr, false);
  if (!post && path == "/health")
    return {200, script.kind == server_kind::vllm ? "" : R"({"status":"ok"})"};
  switch (script.kind) {
    case server_kind::openai: return {};
    case server_kind::vllm: return vllm_route(script, post, path, body);
    case server_kind::sglang: return sglang_route(script, post, path, body, version);
    case server_kind::llamacpp: return llama_route(script, post, path, body);
  }
  return {};
}

gauge_names gauges_of(server_kind kind) {
  switch (kind) {
    case server_kind::vllm: return {"vllm:num_requests_running", "vllm:num_requests_waiting"};
    case server_kind::sglang: return {"sglang:num_running_reqs", "sglang:num_queue_reqs"};
    case server_kind::llamacpp:
      return {"llamacpp:requests_processing", "llamacpp:requests_deferred"};
    case server_kind::openai: break;
  }
  return {"scripted_requests_processing", "scripted_requests_waiting"};
}

} // namespace kernelmill
