#include "actors/policy_client/server_probe.hpp"

#include <future>

#include <fmt/format.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http/http_client.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr const char* question = "Name three colours.";
constexpr uint32_t tokens_asked = 8;
constexpr int64_t seed = 7;
constexpr uint32_t tokens_for_a_call = 128; // a model may think first

Message<wire::CompletionRequest> request_of() {
  return build<wire::CompletionRequest>([](wire::CompletionRequest::Builder x) {
    auto message = x.initMessages(1)[0];
    message.setRole("user");
    message.setContent(question);
    auto sampling = x.initSampling();
    sampling.setMaxTokens(tokens_asked);
    sampling.setSeed(seed);
    sampling.setLogprobs(true);
  });
}

// A question that leads to a call.
Message<wire::CompletionRequest> request_for_call(const char* choice, bool with_tool = true) {
  return build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    auto message = x.initMessages(1)[0];
    message.setRole("user");
    message.setContent("Call the tool note with the text \"ready\".");
    auto sampling = x.initSampling();
    sampling.setMaxTokens(with_tool ? tokens_for_a_call : 1);
    sampling.setSeed(seed);
    if (!with_tool) return;
    auto tool = x.initTools(1)[0];
    tool.setName("note");
    tool.setDescription("Keeps a text.");
    tool.setParameters(
        R"({"type":"object","properties":{"text":{"type":"string"}},"required":["text"]})");
    x.setToolChoice(choice);
  });
}

const char* flag_for_tools(server_kind kind) {
  switch (kind) {
    case server_kind::vllm:
      return "tools.calls=native needs --enable-auto-tool-choice and --tool-call-parser NAME";
    case server_kind::sglang: return "tools.calls=native needs --tool-call-parser NAME";
    case server_kind::llamacpp: return "tools.calls=native needs --jinja";
    case server_kind::openai: break;
  }
  return "tools.calls=native needs the server's parser of tool calls";
}

/// The questions, one method each; `add` collects what they find.
class prober {
public:
  prober(const policy_config& config, http_transport& transport, secret_ptr key,
         uint32_t timeout_ms)
      : config_(config), transport_(transport), key_(std::move(key)), timeout_ms_(timeout_ms) {}

  expected<void> ask_models();
  void find_kind(std::optional<server_kind> given);
  void ask_health();
  void ask_version();
  void ask_tokenizer();
  expected<void> ask_chat();
  void ask_token_route();
  void ask_stream();
  void ask_seed();
  void ask_tools();
  void ask_metrics();
  void ask_abort();

  server_report report;

private:
  http_response send(const std::string& url, std::string body = {}, chat_stream* stream = nullptr);
  http_response get(std::string_view path) { return send(root_endpoint(config_, path)); }
  http_response post(std::string_view path, std::string body) {
    return send(root_endpoint(config_, path), std::move(body));
  }
  std::string chat_text(bool stream) const;
  attempt_reading ask(const Message<wire::CompletionRequest>& request);
  void add(const char* name, std::optional<bool> has, std::string seen, const char* without);
  std::string seen(const http_response& x, std::string_view path) const;
  error refusal(const http_response& x) const;

  const policy_config& config_;
  http_transport& transport_;
  secret_ptr key_;
  uint32_t timeout_ms_;
  completion_answer chat_;
  std::vector<int32_t> prompt_;
};

bool good(const http_response& x) {
  return x.fault == transport_fault::none && x.status >= 200 && x.status <= 299;
}

std::string member_text(const std::string& body, const char* key) {
  auto frame = json::parse(body, nullptr, false);
  if (!frame.is_object() || !frame.contains(key) || !frame[key].is_string()) return {};
  // Printable, and not long.
  return parse_error_body(frame[key].get<std::string>()).message;
}

http_response prober::send(const std::string& url, std::string body, chat_stream* stream) {
  http_request request;
  request.post = !body.empty();
  request.url = url;
  request.body = std::move(body);
  request.bearer = key_;
  request.connect_timeout_ms = config_.connect_timeout_ms;
  request.timeout_ms = timeout_ms_;
  if (request.post) request.headers = {{"Content-Type", "application/json"}};
  if (stream != nullptr)
    request.on_data = [stream](std::string_view bytes) { return stream->feed(bytes); };
  std::promise<http_response> promise;
  auto answer = promise.get_future();
  transport_.submit(std::move(request),
                    [&promise](http_response x) { promise.set_value(std::move(x)); });
  return answer.get();
}

void prober::add(const char* name, std::optional<bool> has, std::string text, const char* without) {
  if (key_) text = key_->redact(std::move(text));
  report.capabilities.push_back({name, has, std::move(text), without});
}

std::string prober::seen(const http_response& x, std::string_view path) const {
  if (x.fault != transport_fault::none) return fmt::format("{}: {}", path, x.detail);
  return fmt::format("{} answered {}", path, x.status);
}

// What a run would make of the same answer.
error prober::refusal(const http_response& x) const {
  auto decision = classify(read_attempt(x, parse_chat_response).signal, {}, 0);
  auto result = decision.fault;
  if (key_) result.message = key_->redact(std::move(result.message));
  return result;
}

std::string prober::chat_text(bool stream) const {
  auto request = request_of();
  return chat_body(*request.open(),
                   {report.model, report.kind, stream, config_.max_tokens_field, true});
}

expected<void> prober::ask_models() {
  auto x = send(endpoint(config_, "models"));
  if (x.fault != transport_fault::none || x.status == 401 || x.status == 403)
    return tl::unexpected<error>{refusal(x)};
  if (good(x)) report.models = parse_model_list(x.body);
  report.model = config_.model;
  if (report.model.empty() && !report.models.empty()) report.model = report.models.front();
  add("models", !report.models.empty(),
      report.models.empty() ? seen(x, "/v1/models")
                            : fmt::format("{}", fmt::join(report.models, ", ")),
      "a wrong policy.model shows only when the first completion is refused");
  if (report.model.empty())
    return configuration_error("invalid_value",
                               "failed to probe " + config_.base_url +
                                   ": the server lists no models and none was named",
                               "name one with --model");
  return {};
}

void prober::find_kind(std::optional<server_kind> given) {
  report.kind_was_found = !given;
  if (given) {
    report.kind = *given;
  } else if (auto x = get("props"); good(x) && x.body.find("total_slots") != std::string::npos) {
    report.kind = server_kind::llamacpp;
  } else if (good(get("get_model_info")) || good(get("model_info"))) {
    report.kind = server_kind::sglang;
  } else if (!member_text(get("version").body, "version").empty()) {
    report.kind = server_kind::vllm;
  }
}

void prober::ask_health() {
  auto x = get("health");
  add("health", good(x), seen(x, "/health"),
      "a server that is loading or failing looks like a slow one");
}

void prober::ask_version() {
  switch (report.kind) {
    case server_kind::vllm: report.version = member_text(get("version").body, "version"); break;
    case server_kind::sglang: {
      auto x = get("get_server_info");
      report.version = member_text(good(x) ? x.body : get("server_info").body, "version");
      report.weight_version = member_text(get("get_model_info").body, "weight_version");
      break;
    }
    case server_kind::llamacpp:
      report.version = member_text(get("props").body, "build_info");
      break;
    case server_kind::openai: break;
  }
  add("version", !report.version.empty(),
      report.version.empty() ? "no route reports it" : report.version,
      "the software that sampled a run is not recorded");
}

void prober::ask_tokenizer() {
  constexpr auto lost = "prompts cannot be counted or tokenized in advance";
  constexpr auto lost_render = "prompts are rendered by a chat of one token if the server "
                               "returns prompt ids; else every prompt is tokenized again";
  if (report.kind == server_kind::openai) {
    add("tokenize", false, "this kind has no such route", lost);
    add("render", false, "this kind has no such route", lost_render);
    return;
  }
  if (report.kind == server_kind::llamacpp) {
    auto request = request_of();
    auto y = post(template_path, tokenize_body(*request.open(), report.model));
    auto text = good(y) ? parse_detokenized(y.body).value_or(question) : question;
    auto x = post(tokenize_path(report.kind), tokenize_text_body(text));
    auto ids =
        good(x) ? parse_token_list(x.body) : tl::expected<std::vector<int32_t>, bad_answer>{};
    add("tokenize", ids && !ids->empty(), seen(x, "/tokenize"), lost);
    add("render", good(y), seen(y, "/apply-template"), lost_render);
    if (ids && good(y)) prompt_ = std::move(*ids);
    return;
  }
  auto path = std::string{tokenize_path(report.kind)};
  auto x = post(path, json{{"model", report.model}, {"prompt", question}}.dump());
  add("tokenize", good(x) && parse_token_list(x.body).has_value(), seen(x, "/" + path), lost);
  auto request = request_of();
  auto y = post(path, tokenize_body(*request.open(), report.model));
  auto ids = good(y) ? parse_token_list(y.body) : tl::expected<std::vector<int32_t>, bad_answer>{};
  if (ids) prompt_ = std::move(*ids);
  add("render", !prompt_.empty(), seen(y, "/" + path + " with messages"), lost_render);
}

expected<void> prober::ask_chat() {
  auto x = send(endpoint(config_, "chat/completions"), chat_text(false));
  auto reading = read_attempt(x, parse_chat_response);
  if (!reading.understood) return tl::unexpected<error>{refusal(x)};
  chat_ = std::move(reading.answer);
  settle_version(chat_, report.kind);
  auto hint = swallowed_hint(chat_, report.kind);
  auto cut = hint.empty() && chat_.content.empty();
  add("content", cut ? std::nullopt : std::optional{hint.empty()},
      cut            ? "not tested: the answer ended before its content"
      : hint.empty() ? "the answer has one"
                     : hint,
      "answers have no kernel: all of them are format errors");
  auto count = [](size_t n) { return n == 0 ? "none in a chat" : fmt::format("{} in a chat", n); };
  add("token_ids", !chat_.token_ids.empty(), count(chat_.token_ids.size()),
      "the trainer tokenizes completions again; episodes are marked inexact");
  add("prompt_ids", !chat_.prompt_token_ids.empty(), count(chat_.prompt_token_ids.size()),
      "the trainer renders prompts itself; episodes are marked inexact");
  add("logprobs", !chat_.logprobs.empty(), count(chat_.logprobs.size()),
      "no importance ratios, so no off-policy corrections");
  return {};
}

void prober::ask_token_route() {
  constexpr auto lost = "policy.tokens exact is unavailable: turns do not continue the sampled ids";
  if (!takes_token_ids(report.kind)) {
    add("token_route", false, "this kind takes no ids", lost);
  } else if (prompt_.empty() && chat_.prompt_token_ids.empty()) {
    add("token_route", std::nullopt, "not tested: no route renders a prompt", lost);
  } else {
    auto path = std::string{generate_path(report.kind)};
    auto request = request_of();
    if (prompt_.empty()) prompt_ = chat_.prompt_token_ids;
    auto x = post(path, generate_body(report.kind, *request.open(), prompt_, report.model,
                                      "kernelmill-probe"));
    auto parsed = good(x) ? parse_generated(report.kind, x.body)
                          : tl::expected<completion_answer, bad_answer>{completion_answer{}};
    auto works = parsed && !parsed->token_ids.empty() && !parsed->logprobs.empty();
    if (works && !parsed->weight_versions.empty()) chat_.weight_versions = parsed->weight_versions;
    add("token_route", works, seen(x, "/" + path), lost);
  }
  if (!chat_.weight_versions.empty()) report.weight_version = chat_.weight_versions.back().version;
  add("weight_version", !report.weight_version.empty(),
      report.weight_version.empty() ? "no answer reports it" : report.weight_version,
      "staleness is unknown: tokens cannot be assigned to versions of the weights");
}

void prober::ask_stream() {
  chat_stream stream;
  auto x = send(endpoint(config_, "chat/completions"), chat_text(true), &stream);
  auto reading = read_attempt(x, &stream);
  add("streaming", reading.understood && stream.is_stream(),
      !reading.understood  ? seen(x, "a streamed chat")
      : stream.is_stream() ? "a stream came to its [DONE]"
                           : "the whole answer came at once",
      "stalls are found only at the deadline, and the whole answer is lost");
}

void prober::ask_seed() {
  auto x = send(endpoint(config_, "chat/completions"), chat_text(false));
  auto again = read_attempt(x, parse_chat_response);
  std::optional<bool> same;
  if (again.understood) same = full_text(again.answer) == full_text(chat_);
  add("seed_repeat", same,
      !same   ? seen(x, "a second chat")
      : *same ? fmt::format("seed {} gave the same text twice", seed)
              : fmt::format("seed {} gave two texts", seed),
      "sampling cannot be repeated; only stored completions remain");
}

void prober::ask_metrics() {
  auto x = get("metrics");
  add("metrics", good(x) && x.body.find("# TYPE") != std::string::npos, seen(x, "/metrics"),
      "the server's queue cannot be observed");
}

void prober::ask_abort() {
  constexpr auto lost = "cancelled requests end only when their connection closes; behind a "
                        "router they may continue";
  if (report.kind == server_kind::sglang) {
    auto x = post("abort_request", json{{"rid", "kernelmill-probe-none"}}.dump());
    add("abort", good(x), seen(x, "/abort_request"), lost);
  } else if (report.kind == server_kind::vllm) {
    auto x = post("abort_requests", json{{"request_ids", {"kernelmill-probe-none"}}}.dump());
    add("abort", good(x), seen(x, "/abort_requests"), lost);
  } else {
    add("abort", false, "this kind has no such route", lost);
  }
}

attempt_reading prober::ask(const Message<wire::CompletionRequest>& request) {
  auto body = chat_body(*request.open(),
                        {report.model, report.kind, false, config_.max_tokens_field, false, 0});
  return read_attempt(send(endpoint(config_, "chat/completions"), std::move(body)),
                      parse_chat_response);
}

void prober::ask_tools() {
  auto lost = flag_for_tools(report.kind);
  std::string how = "native";
  auto reading = ask(request_for_call("auto"));
  if (reading.signal.transport != transport_fault::none)
    return add("tools", std::nullopt, "not tested: " + reading.signal.detail, lost);
  if (!reading.understood) {
    // Not every server knows the choice; tools alone leave it to the model, too.
    auto again = ask(request_for_call(""));
    if (!again.understood)
      return add("tools", false,
                 "text (the server refused them: " + reading.signal.server.message + ")", lost);
    reading = std::move(again);
    how += ", without tool_choice";
  }
  const auto& answer = reading.answer;
  if (!answer.calls.empty()) return add("tools", true, how, lost);
  if (!parse_text_calls(answer.content).calls.empty())
    return add("tools", false, "text (the server leaves calls in the text)", lost);
  // llama.cpp takes tools whatever the template makes of them.
  auto plain = ask(request_for_call("", false));
  if (plain.understood && answer.prompt_tokens > 0 &&
      plain.answer.prompt_tokens == answer.prompt_tokens)
    return add("tools", false, "text (the model's template shows no tools)",
               "tools.calls=native needs a template that shows tools");
  add("tools", std::nullopt, "the server takes them; the model called none when asked to", lost);
}

} // namespace

expected<server_report> probe_server(const policy_config& config, std::optional<server_kind> kind,
                                     uint32_t timeout_ms) {
  auto key = load_secret(config.api_key_env, config.api_key_file);
  KM_TRY(key);
  auto client = http_client::start({config.keep_alive_s, 8, config.ca_file});
  KM_TRY(client);
  prober x{config, **client, *key, timeout_ms};
  KM_TRY(x.ask_models());
  x.find_kind(kind);
  x.ask_health();
  x.ask_version();
  x.ask_tokenizer();
  KM_TRY(x.ask_chat());
  x.ask_token_route();
  x.ask_stream();
  x.ask_seed();
  x.ask_metrics();
  x.ask_abort();
  x.ask_tools();
  return std::move(x.report);
}

} // namespace kernelmill
