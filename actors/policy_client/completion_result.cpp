#include "actors/policy_client/completion_result.hpp"

#include "messages/fault.hpp"
#include "messages/trace_ids.hpp"

#include <chrono>

#include <fmt/format.h>

namespace kernelmill {

namespace {

constexpr size_t max_header_text = 200;
constexpr size_t least_hidden_bytes = 8;

std::string header_text(std::string_view text) {
  std::string result;
  for (unsigned char c : text.substr(0, max_header_text))
    result.push_back(c > ' ' && c < 0x7f ? static_cast<char>(c) : '_');
  return result;
}

kj::StringPtr kj_text(const std::string& x) {
  return {x.c_str(), x.size()};
}

template <class List, class Values>
void fill(List list, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) list.set(static_cast<unsigned>(i), values[i]);
}

template <class T>
unsigned count(const std::vector<T>& xs) {
  return static_cast<unsigned>(xs.size());
}

// Fills the signal with what a 200 turned out to be.
void take_answer(attempt_reading& to, tl::expected<completion_answer, bad_answer> parsed) {
  if (parsed) {
    to.answer = std::move(*parsed);
    to.understood = true;
    to.signal.finish_reason = to.answer.finish_reason;
    to.signal.only_tool_calls = !to.answer.calls.empty() && to.answer.content.empty();
    to.signal.broken_text = to.answer.broken_text;
    return;
  }
  to.signal.of_completion = parsed.error().of_completion;
  to.signal.server = std::move(parsed.error().error);
  (parsed.error().from_server ? to.signal.error_within : to.signal.unreadable) = true;
}

} // namespace

expected<request_facts> open_request(const Message<wire::CompletionRequest>& request) {
  try {
    auto view = request.open();
    for (auto x : view->getMessages()) {
      x.getRole();
      x.getContent();
      x.getCallId();
      for (auto call : x.getCalls()) {
        call.getId();
        call.getName();
        call.getArguments();
      }
    }
    for (auto x : view->getTools()) {
      x.getName();
      x.getDescription();
      x.getParameters();
    }
    view->getToolChoice();
    for (auto x : view->getSampling().getStop()) static_cast<void>(x);
    static_cast<void>(view->getThreadIds().size());
    return request_facts{view->getSession().cStr(), view->getTurn(), view->getDeadlineMs(),
                         view->getExactTokens()};
  } catch (const kj::Exception& e) {
    return infrastructure_error("malformed_message",
                                std::string{"failed to read a completion request: "} +
                                    e.getDescription().cStr());
  }
}

std::string attempt_id(const std::string& session, uint32_t turn, uint32_t attempt,
                       const std::string& salt) {
  auto id = fmt::format("{}.t{}.a{}", header_text(session), turn, attempt);
  return salt.empty() ? id : id + "-" + header_text(salt);
}

std::vector<std::pair<std::string, std::string>>
attempt_headers(const std::string& session, const std::string& request_id, const envelope& env) {
  auto affinity = header_text(session);
  auto trace = trace_of_episode(env.run, env.episode);
  std::vector<std::pair<std::string, std::string>> result{
      {"Content-Type", "application/json"},
      {"X-Request-Id", header_text(request_id)},
      {"traceparent", fmt::format("00-{:016x}{:016x}-{:016x}-01", trace.high, trace.low,
                                  span_of(trace, request_id))},
  };
  if (!affinity.empty()) {
    result.emplace_back("X-Session-ID", affinity);
    result.emplace_back("X-SMG-Routing-Key", affinity);
  }
  return result;
}

namespace {

// Reads what every answer has, whatever its body is; true when the body is to be read as an answer.
bool read_frame(attempt_reading& to, const http_response& response) {
  auto& signal = to.signal;
  signal.transport = response.fault;
  signal.detail = response.detail;
  signal.status = response.status;
  signal.retry_after = response.header("retry-after");
  signal.date = response.header("date");
  if (auto location = response.header("location"); !location.empty())
    signal.location = parse_error_body(location).message;
  // The reader stopped the transfer because of what it read.
  auto by_reader = response.fault == transport_fault::refused_by_reader;
  if (response.fault != transport_fault::none && !by_reader) return false;
  if (response.status >= 200 && response.status <= 299) return true;
  signal.server = parse_error_body(response.body);
  return false;
}

} // namespace

attempt_reading read_attempt(const http_response& response, const completion_parser& parse) {
  attempt_reading result;
  if (read_frame(result, response)) take_answer(result, parse(response.body));
  return result;
}

attempt_reading read_attempt(const http_response& response, chat_stream* stream) {
  if (stream == nullptr) return read_attempt(response, parse_chat_response);
  attempt_reading result;
  if (!read_frame(result, response)) {
    auto& signal = result.signal;
    auto whole = signal.transport == transport_fault::truncated && signal.status == 200 &&
                 stream->complete();
    if (!whole) {
      if (signal.status == 200) result.answer = stream->partial();
      return result;
    }
    // The connection broke, and nothing was missing any more.
    signal.transport = transport_fault::none;
  }
  // A transport that knows no streams has kept the body.
  if (!response.body.empty()) stream->feed(response.body);
  take_answer(result, stream->finish());
  if (!result.understood) result.answer = stream->partial();
  if (stream->too_large()) {
    auto& signal = result.signal;
    signal.unreadable = false;
    signal.transport = transport_fault::too_large;
    signal.detail = signal.server.message;
  }
  return result;
}

std::string swallowed_hint(const completion_answer& x, server_kind kind) {
  if (x.content.find_first_not_of(" \t\r\n") != std::string::npos) return {};
  if (x.takes_calls && !x.calls.empty()) return {};
  if (!x.calls.empty())
    return "the server made calls of tools of the words: start it without a parser of tool calls "
           "(vLLM: without --enable-auto-tool-choice; SGLang: without --tool-call-parser)";
  if (x.reasoning.empty() || x.finish_reason != "stop") return {};
  const char* flag = "without a parser of reasoning";
  switch (kind) {
    case server_kind::vllm:
    case server_kind::sglang: flag = "without --reasoning-parser, or with this model's own"; break;
    case server_kind::llamacpp: flag = "with --reasoning-format none"; break;
    case server_kind::openai: break;
  }
  return std::string{"the server took all of the words for reasoning: start it "} + flag;
}

void hide(const secret& key, completion_answer& answer) {
  if (key.reveal().size() < least_hidden_bytes) return;
  auto clean = [&](std::string& text) { text = key.redact(std::move(text)); };
  for (auto* text : {&answer.content, &answer.reasoning, &answer.finish_reason, &answer.model,
                     &answer.fingerprint, &answer.route})
    clean(*text);
  for (auto& x : answer.calls)
    for (auto* text : {&x.id, &x.name, &x.arguments}) clean(*text);
  for (auto& span : answer.weight_versions) clean(span.version);
}

namespace {

void set_answer(wire::CompletionResult::Builder x, const completion_answer& answer) {
  auto text = full_text(answer);
  x.setText(kj_text(text));
  x.setFinishReason(kj_text(answer.finish_reason));
  x.setModel(kj_text(answer.model));
  x.setPromptTokens(answer.prompt_tokens);
  x.setCompletionTokens(answer.completion_tokens);
  fill(x.initPromptTokenIds(count(answer.prompt_token_ids)), answer.prompt_token_ids);
  fill(x.initTokenIds(count(answer.token_ids)), answer.token_ids);
  fill(x.initLogprobs(count(answer.logprobs)), answer.logprobs);
  auto versions = x.initWeightVersions(count(answer.weight_versions));
  for (unsigned i = 0; i < versions.size(); ++i) {
    versions[i].setVersion(kj_text(answer.weight_versions[i].version));
    versions[i].setStart(answer.weight_versions[i].start);
    versions[i].setEnd(answer.weight_versions[i].end);
  }
  x.setRoute(kj_text(answer.route));
  if (!answer.takes_calls) return;
  auto calls = x.initCalls(count(answer.calls));
  for (unsigned i = 0; i < calls.size(); ++i) {
    calls[i].setId(kj_text(answer.calls[i].id));
    calls[i].setName(kj_text(answer.calls[i].name));
    calls[i].setArguments(kj_text(answer.calls[i].arguments));
  }
}

} // namespace

Message<wire::CompletionResult> completed_result(const completion_answer& answer,
                                                 const std::string& request_id, uint32_t attempts,
                                                 double seconds) {
  return failed_result({fault_class::none, {}, {}, {}}, request_id, attempts, seconds, answer);
}

Message<wire::CompletionResult> failed_result(const error& why, const std::string& request_id,
                                              uint32_t attempts, double seconds,
                                              const completion_answer& answer) {
  return build<wire::CompletionResult>([&](wire::CompletionResult::Builder x) {
    auto ours = why.cls != fault_class::none && why.cls != fault_class::policy;
    if (!ours) set_answer(x, answer);
    x.setRequestId(kj_text(request_id));
    x.setAttempts(attempts);
    x.setSeconds(seconds);
    if (why.cls != fault_class::none) set_fault(x.initFault(), why);
  });
}

Message<wire::Snapshot> make_snapshot(const std::string& id, const std::string& state,
                                      const std::string& detail,
                                      const std::vector<std::pair<const char*, double>>& numbers,
                                      const std::vector<tried_request>& tried,
                                      const std::string& waiting,
                                      const std::vector<streaming_request>& streaming) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor("policy_client");
    x.setId(kj_text(id));
    x.setState(kj_text(state));
    x.setDetail(kj_text(detail));
    auto list = x.initNumbers(count(numbers));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setName(numbers[i].first);
      list[i].setValue(numbers[i].second);
      list[i].setUnit(std::string_view{numbers[i].first}.ends_with("seconds") ? "s" : "count");
    }
    auto children = x.initChildren(count(tried) + 1 + count(streaming));
    auto queue = children[count(tried)];
    queue.setActor("queue");
    queue.setId("policy");
    queue.setState(waiting.empty() ? "idle" : "working");
    queue.setDetail(waiting);
    for (unsigned i = 0; i < count(tried); ++i) {
      children[i].setActor("policy_request");
      children[i].setId(kj_text(tried[i].session));
      children[i].setState(kj_text(tried[i].state));
      children[i].setSince(tried[i].since);
      children[i].setDetail(kj_text(tried[i].last_error));
      auto why = children[i].initChildren(1)[0];
      why.setActor("error");
      why.setId(kj_text(tried[i].category));
      why.setDetail(kj_text(tried[i].hint));
      auto known = children[i].initNumbers(2);
      known[0].setName("attempts");
      known[0].setValue(tried[i].attempts);
      known[1].setName("due_seconds");
      known[1].setValue(tried[i].due);
    }
    for (unsigned i = 0; i < count(streaming); ++i) {
      auto child = children[count(tried) + 1 + i];
      child.setActor("policy_stream");
      child.setId(kj_text(streaming[i].session));
      child.setState("streaming");
      child.setDetail(kj_text(streaming[i].tail));
      auto bytes = child.initNumbers(1)[0];
      bytes.setName("bytes");
      bytes.setValue(static_cast<double>(streaming[i].bytes));
      bytes.setUnit("B");
    }
  });
}

} // namespace kernelmill
