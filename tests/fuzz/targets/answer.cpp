// What a policy server says: completions, errors, lists of models, token ids, metrics. A server may
// lie, break off, or be another kind of server.

#include <algorithm>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/protocol/chat_calls.hpp"
#include "actors/policy_client/protocol/json_text.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "actors/policy_client/server_metrics.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

void check_server_error(const server_error& x) {
  for (const auto& text : {x.message, x.type, x.code}) {
    promise(text.size() <= 600, "an error's text has at most 500 bytes, and some of ours");
    promise(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; }),
            "an error's text is printable");
  }
  is_context_overflow(x);
}

void check_completion(completion_answer x, server_kind kind) {
  promise(x.logprobs.empty() || x.token_ids.empty() || x.logprobs.size() == x.token_ids.size(),
          "where there are ids, log-probabilities come for each or for none");
  uint32_t last = 0;
  for (const auto& span : x.weight_versions) {
    promise(span.start <= span.end && span.start >= last, "spans of weights are in order");
    last = span.end;
  }
  settle_version(x, kind);
  ids_of_text(x, true);
  static std::string words = "a secret key";
  static const secret key{words};
  hide(key, x);
  completed_result(x, "id", 1, 0);
}

void check_calls(completion_answer x) {
  static const auto request = build<wire::CompletionRequest>(
      [](wire::CompletionRequest::Builder to) { to.initTools(1)[0].setName("run"); });
  settle_calls(x, *request.open());
  promise(x.calls.size() <= max_tool_calls, "calls are bounded");
  promise(std::none_of(x.calls.begin(), x.calls.end(), [](const auto& y) { return y.id.empty(); }),
          "each call has an id");
  completed_result(x, "id", 1, 0);
}

void check_text_calls(std::string_view bytes) {
  auto x = parse_text_calls(bytes);
  promise(x.calls.size() <= max_tool_calls, "calls are bounded");
  promise(x.text.size() <= bytes.size(), "what is left of a text is no longer than it");
  for (const auto& call : x.calls) {
    promise(!call.name.empty(), "a call has a name");
    promise(read_json(call.arguments).is_object(), "arguments are an object");
  }
}

template <class T>
const T* good(const tl::expected<T, bad_answer>& x) {
  if (!x) check_server_error(x.error().error);
  return x ? &*x : nullptr;
}

} // namespace

void answer(std::string_view bytes) {
  constexpr server_kind kinds[] = {server_kind::openai, server_kind::vllm, server_kind::sglang,
                                   server_kind::llamacpp};
  auto chat = parse_chat_response(bytes);
  if (auto* x = good(chat))
    for (auto kind : kinds) check_completion(*x, kind);
  if (chat) check_calls(*chat);
  check_text_calls(bytes);
  for (auto kind : kinds) {
    auto generated = parse_generated(kind, bytes);
    if (auto* x = good(generated)) check_completion(*x, kind);
  }
  good(parse_token_list(bytes));
  good(parse_detokenized(bytes));
  check_server_error(parse_error_body(bytes));
  parse_model_list(bytes);
  parse_server_load(bytes);
  // The fast reader reads what the slow one reads.
  auto fast = read_json(bytes);
  nlohmann::json slow = nlohmann::json::value_t::discarded;
  if (!nests_deeper(bytes)) slow = nlohmann::json::parse(bytes, nullptr, false);
  promise(fast.is_discarded() == slow.is_discarded(), "both readers refuse the same texts");
  if (!fast.is_discarded()) {
    promise(fast == slow || fast != fast, "both readers read the same");
    write_json(fast);
  }
}

} // namespace kernelmill::fuzz
