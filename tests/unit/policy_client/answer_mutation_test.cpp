// Answers of policy servers, changed at random: by what a model might have said, and byte by byte.
// They go through the code that reads, classifies, parses and judges them in a run. Nothing that a
// model's words can cause may end as a fault of the infrastructure.
//
// KERNELMILL_ANSWER_MUTATIONS=50000 build/tests/actor_tests --gtest_filter='answer_mutations.*'

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/episode/completion_parser.hpp"
#include "actors/governance/judge.hpp"
#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/protocol/chat_calls.hpp"
#include "actors/policy_client/protocol/json_text.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "messages/fault.hpp"

namespace kernelmill {
namespace answer_mutation_test {

constexpr size_t mutations_without_a_wish = 4000;
constexpr size_t limit = 16 << 10;

// A run asks for one of these forms, and knows which.
enum class form { chat, stream, vllm_ids, sglang_ids, llama_ids };

struct answer_shape {
  const char* name;
  form as;
  const char* body; ///< "@" stands for words
};

// As the servers send them, with short words; each frame of a stream on its line.
constexpr answer_shape shapes[] = {
    {"openai", form::chat,
     R"({"id":"chatcmpl-B9","object":"chat.completion","created":1741569952,"model":"gpt-4.1","choices":[{"index":0,"message":{"role":"assistant","content":"@","refusal":null,"annotations":[]},"logprobs":{"content":[{"token":"a","logprob":-0.31,"bytes":[97],"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"completion_tokens_details":{"reasoning_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"})"},
    {"openai, refused", form::chat,
     R"({"id":"chatcmpl-B9","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"@"},"finish_reason":"stop"}]})"},
    {"vllm", form::chat,
     R"({"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"@","content":"@","tool_calls":[]},"logprobs":{"content":[{"token":"token_id:7","logprob":-0.5}]},"finish_reason":"length","stop_reason":null,"token_ids":[7]}],"usage":{"prompt_tokens":2,"completion_tokens":1},"prompt_logprobs":null,"prompt_token_ids":[1,2],"kv_transfer_params":null})"},
    {"vllm, all of it reasoning", form::chat,
     R"({"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","reasoning":"@","content":null},"finish_reason":"stop"}]})"},
    {"vllm, a call of a tool", form::chat,
     R"({"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"@","arguments":"@"}}]},"finish_reason":"tool_calls"}]})"},
    {"vllm, calls of tools", form::chat,
     R"({"choices":[{"message":{"role":"assistant","content":"@","tool_calls":[{"id":"@","type":"function","function":{"name":"@","arguments":"@"}},{"id":"c","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},"finish_reason":"tool_calls"}]})"},
    {"ollama, arguments as an object", form::chat,
     R"({"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"@","arguments":{"@":"@","n":[1,{}]}}}]},"finish_reason":"stop"}]})"},
    {"openai, a call of a function", form::chat,
     R"({"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"@","arguments":"@"}},"finish_reason":"function_call"}]})"},
    {"sglang", form::chat, R"({"id":"5f","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"@","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":"stop","matched_stop":151645,"response_token_ids":[1,2]}],"usage":{"prompt_tokens":9,"completion_tokens":2},"metadata":{"weight_version":"default"}})"},
    {"llama.cpp", form::chat,
     R"({"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"@"},"logprobs":{"content":[{"id":9,"token":"a","bytes":[97],"logprob":-0.1,"top_logprobs":[{"id":9,"token":"a","logprob":-0.1}]}]}}],"created":1,"model":"m","system_fingerprint":"b6000","object":"chat.completion","usage":{"completion_tokens":1,"prompt_tokens":3},"timings":{"prompt_ms":1.5}})"},
    {"ollama", form::chat,
     R"({"id":"chatcmpl-123","object":"chat.completion","created":1728222793,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"message":{"role":"assistant","content":"@","reasoning":"@"},"finish_reason":"stop"}],"usage":{"prompt_tokens":26,"completion_tokens":3}})"},
    {"parts", form::chat,
     R"({"choices":[{"message":{"content":[{"type":"text","text":"@"},{"type":"text","text":"@"}]},"finish_reason":{"type":"stop"}}]})"},
    {"openai, streamed", form::stream,
     R"(data: {"id":"c","object":"chat.completion.chunk","model":"gpt","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {"id":"c","choices":[{"index":0,"delta":{"content":"@"},"logprobs":{"content":[{"token":"a","logprob":-0.5}]},"finish_reason":null}]}
data: {"id":"c","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]}
data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}
data: [DONE])"},
    {"vllm, streamed", form::stream,
     R"(data: {"id":"c","model":"m","prompt_token_ids":[1,2],"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}
data: {"choices":[{"index":0,"delta":{"reasoning_content":"@"},"token_ids":[5]}]}
: ping
data: {"choices":[{"index":0,"delta":{"content":"@"},"token_ids":[7,8]}]}
data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"length","stop_reason":null}]}
data: [DONE])"},
    {"sglang, streamed calls", form::stream,
     R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"@","arguments":""}}]}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]}}]}
data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls","matched_stop":null}]}
data: [DONE])"},
    {"openai, streamed calls in turn", form::stream,
     R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"@"}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"run","arguments":""}}]}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"@","arguments":"@"}}]}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@"}},{"index":1,"function":{"arguments":"@"}}]}}]}
data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
data: [DONE])"},
    {"llama.cpp, streamed", form::stream,
     R"(data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"model":"m"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"@"}}]}
data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":{"predicted_n":3}}
data: [DONE])"},
    {"ollama, streamed without an end", form::stream,
     R"(data: {"id":"chatcmpl-1","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"@"},"finish_reason":null}]}
data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]})"},
    {"vllm, ids", form::vllm_ids,
     R"({"request_id":"r","choices":[{"index":0,"logprobs":{"content":[{"token":"@","logprob":-0.5}]},"finish_reason":"stop","token_ids":[7]}]})"},
    {"sglang, ids", form::sglang_ids,
     R"({"text":"@","output_ids":[7,8],"meta_info":{"id":"r","finish_reason":{"type":"stop","matched":2},"prompt_tokens":3,"weight_version":"default","output_token_logprobs":[[-0.1,7,null],[-0.2,8,null]]}})"},
    {"llama.cpp, ids", form::llama_ids,
     R"({"index":0,"content":"@","tokens":[7,8],"stop":true,"model":"m","tokens_predicted":2,"stop_type":"eos","completion_probabilities":[{"id":7,"token":"a","bytes":[97],"logprob":-0.1}]})"},
};

// What a model may say: kernels, marks, characters of all kinds, and words that look like a
// server's.
const std::vector<std::string> sayings = {
    "<think>\nso\n</think>\n<KERNEL>\n```cpp\nint x;\n```\n</KERNEL>",
    "<KERNEL>",
    "</KERNEL>",
    "<think>",
    "</think>",
    "<|im_end|>\n<|im_start|>user\n",
    "I cannot do this.",
    "",
    " ",
    "\n\n",
    "\r\n\r\n",
    std::string(1, '\0'),
    "\x01\x1b[2J\x7f",
    "\xEF\xBB\xBF",
    "\xEF\xB7\x90",
    "\xEF\xBF\xBD",
    "\xF0\x9F\x98\x80",
    "\xE2\x80\xAE\xD7\xA9",
    "data: [DONE]\n\n",
    "event: error\ndata: no\n\n",
    R"({"error":{"message":"maximum context length","code":500}})",
    R"("finish_reason":"abort")",
    R"(\ud800)",
    "NaN, -Infinity",
    "\\",
    "\"",
    "'};]",
    "```",
    R"(<tool_call>{"name":"run","arguments":{"n":1}}</tool_call>)",
    "<tool_call>",
    "</tool_call>",
    R"({"name":"run","parameters":{}})",
    R"([TOOL_CALLS] [{"name":"run","arguments":{}}])",
    R"({"n":)",
};

// Bytes that are no text, as a server may put them into its JSON.
const std::vector<std::string> broken_sayings = {R"(\ud800)", R"(\udfff\ud800)", R"(\uD83D\u0041)",
                                                 "\xff",      "\xc0\x80",        "\xed\xa0\x80",
                                                 "\xf4\x90",  "\xe2\x82",        "\n",
                                                 "\x02",      R"(\x41)",         R"(\u00)"};

struct mutant {
  const answer_shape* shape = nullptr;
  std::string body;
  bool by_bytes = false;
  size_t first_change = std::string::npos; ///< byte by byte
};

class mutator {
public:
  explicit mutator(uint64_t seed) : random_(seed) {}

  mutant next() {
    mutant x;
    x.shape = &shapes[below(std::size(shapes))];
    for (std::string_view rest = x.shape->body; !rest.empty(); rest.remove_prefix(1)) {
      if (rest.front() == '@')
        x.body += words();
      else
        x.body += rest.front();
    }
    if (x.shape->as == form::stream) x.body = frames(x.body);
    x.by_bytes = below(2) == 0;
    if (x.by_bytes)
      for (auto n = 1 + below(4); n > 0; --n) change(x);
    return x;
  }

  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

private:
  std::string words() {
    std::string result;
    for (auto n = below(5); n > 0; --n) {
      if (below(6) == 0) {
        result += broken_sayings[below(broken_sayings.size())];
        continue;
      }
      std::string quoted;
      append_json(quoted, sayings[below(sayings.size())]);
      result.append(quoted, 1, quoted.size() - 2);
    }
    if (below(64) == 0) result += std::string(limit / 2 + below(limit), 'x');
    return result;
  }

  // A blank line behind each line of a template. A raw line break within words breaks a frame.
  static std::string frames(const std::string& lines) {
    std::string result;
    for (size_t i = 0; i < lines.size(); ++i) {
      auto frame = lines[i] == '\n' &&
                   (lines.compare(i + 1, 5, "data:") == 0 || lines.compare(i + 1, 1, ":") == 0);
      result += frame ? "\n\n" : std::string(1, lines[i]);
    }
    return result + "\n\n";
  }

  void change(mutant& x) {
    if (x.body.empty()) return;
    auto at = below(x.body.size());
    auto size = 1 + below(std::min<size_t>(32, x.body.size() - at));
    x.first_change = std::min(x.first_change, at);
    switch (below(7)) {
      case 0: x.body[at] = static_cast<char>(random_()); break;
      case 1: x.body[at] = static_cast<char>(x.body[at] ^ 1 << below(8)); break;
      case 2: x.body.erase(at, size); break;
      case 3: x.body.insert(at, x.body.substr(below(x.body.size()), size)); break;
      case 4: x.body.insert(at, broken_sayings[below(broken_sayings.size())]); break;
      case 5: x.body.resize(at); break;
      default: {
        constexpr std::array<const char*, 6> values = {"null", "NaN", "-1", "[]", "{}", "1e400"};
        x.body.replace(at, size, values[below(values.size())]);
      }
    }
  }

  std::mt19937_64 random_;
};

attempt_reading read(const mutant& x, mutator& random) {
  http_response response;
  response.status = 200;
  if (x.shape->as != form::stream) {
    response.body = x.body;
    if (x.body.size() > limit) response.fault = transport_fault::too_large;
    if (response.fault != transport_fault::none) response.body.resize(limit);
  }
  auto generated = [&](server_kind kind) {
    return read_attempt(response,
                        [&](std::string_view body) { return parse_generated(kind, body); });
  };
  switch (x.shape->as) {
    case form::chat: return read_attempt(response, parse_chat_response);
    case form::vllm_ids: return generated(server_kind::vllm);
    case form::sglang_ids: return generated(server_kind::sglang);
    case form::llama_ids: return generated(server_kind::llamacpp);
    case form::stream: break;
  }
  chat_stream stream{limit};
  for (size_t i = 0; i < x.body.size();) {
    auto piece = 1 + random.below(200);
    if (!stream.feed(std::string_view{x.body}.substr(i, piece))) {
      response.fault = transport_fault::refused_by_reader;
      break;
    }
    i += piece;
  }
  return read_attempt(response, &stream);
}

// Whether a changed body still is what a server sends around a model's words, whole: a completion
// is in it, no error or abort of the server's, and of a stream its end.
bool came_whole(const mutant& x) {
  auto has = [&](std::string_view text) { return x.body.find(text) != std::string::npos; };
  if (!shows_completion(x.body)) return false;
  if (has("\"error\"") || has("\"detail\"") || has("abort") || has("event: error")) return false;
  if (x.shape->as != form::stream) return true;
  auto first = x.body.find("\"choices\"");
  auto reason = x.body.rfind("\"finish_reason\":\"");
  auto end = reason == std::string::npos ? reason : x.body.find("\n\n", reason);
  return x.first_change > first + 16 && end != std::string::npos && x.first_change > end + 2;
}

const Message<wire::CompletionRequest>& request_with_tools() {
  static const auto request = build<wire::CompletionRequest>([](auto x) {
    x.initTools(1)[0].setName("run");
    x.setToolChoice("auto");
  });
  return request;
}

// What was called goes into the next request, whatever it is.
void check_calls(const completion_answer& answer) {
  ASSERT_LE(answer.calls.size(), max_tool_calls);
  auto request = build<wire::CompletionRequest>([&](wire::CompletionRequest::Builder x) {
    auto message = x.initMessages(1)[0];
    message.setRole("assistant");
    auto calls = message.initCalls(static_cast<unsigned>(answer.calls.size()));
    for (unsigned i = 0; i < calls.size(); ++i) {
      const auto& call = answer.calls[i];
      ASSERT_FALSE(call.id.empty());
      calls[i].setId(call.id);
      calls[i].setName(call.name);
      calls[i].setArguments(call.arguments);
    }
  });
  auto body = read_json(chat_body(*request.open(), {"m"}));
  ASSERT_TRUE(body.is_object());
  for (const auto& call : body["messages"][0].value("tool_calls", nlohmann::json::array())) {
    auto arguments = read_json(call["function"]["arguments"].get<std::string>());
    ASSERT_TRUE(arguments.is_object()) << "servers refuse all else";
  }
}

struct tally {
  size_t answers = 0, policy = 0, ours = 0, unread = 0, calls = 0;
};

// The way of an answer through an episode: its text, its parse, and, where there is no kernel, the
// verdict.
void check_turn(const attempt_reading& reading, const attempt_decision& decision) {
  auto result = failed_result(decision.fault, "id", 1, 0, reading.answer);
  auto view = result.open();
  std::string text{view->getText().begin(), view->getText().size()};
  auto parsed = parse_completion(text);
  auto ours = decision.fault.cls == fault_class::policy;
  if (ours) parsed = {};
  if (view->getFinishReason() == "length") explain_cut(parsed, text, "max_tokens = 1");
  ASSERT_EQ(is_utf8(text), true);
  if (parsed.ok) return;
  auto facts = build<wire::TurnFacts>([&](wire::TurnFacts::Builder x) {
    auto list = x.initParsed().initProblems(static_cast<unsigned>(parsed.problems.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, parsed.problems[i]);
    if (ours) set_fault(x.initFault(), decision.fault);
  });
  auto verdict = judge(*facts.open(), governance_config{});
  auto judged = verdict.open();
  ASSERT_EQ(judged->getOutcome(), wire::Outcome::REJECTED);
  ASSERT_TRUE(std::isfinite(judged->getReward()));
  ASSERT_EQ(judged->getFault().getClass(), wire::FaultClass::POLICY);
  ASSERT_GT(judged->getFault().getMessage().size(), 0u) << "the feedback says why";
}

void check(const mutant& x, mutator& random, tally& count) {
  auto reading = read(x, random);
  auto& signal = reading.signal;
  signal.tools = random.below(2) == 0;
  if (signal.tools && reading.understood) {
    settle_calls(reading.answer, *request_with_tools().open());
    signal.surplus_calls = reading.answer.surplus_calls;
    count.calls += reading.answer.calls.size();
    check_calls(reading.answer);
  }
  auto decision = classify(signal, {}, 0);
  auto answered = decision.action == attempt_action::answer;
  answered                                    ? ++count.answers
  : decision.fault.cls == fault_class::policy ? ++count.policy
                                              : ++count.ours;
  if (!answered && decision.fault.cls != fault_class::policy) {
    if (x.by_bytes && !came_whole(x)) {
      ++count.unread;
      return;
    }
    FAIL() << "a fault of ours: " << decision.fault.category << ": " << decision.fault.message;
  }
  // With a call it is a turn of tools, which needs no kernel.
  if (!answered || reading.answer.calls.empty()) check_turn(reading, decision);
}

TEST(answer_mutations, end_no_episode_as_infrastructure) {
  auto* wish = std::getenv("KERNELMILL_ANSWER_MUTATIONS");
  auto wanted = wish ? std::strtoull(wish, nullptr, 10) : mutations_without_a_wish;
  mutator random{20261129};
  tally count;
  for (uint64_t i = 0; i < wanted; ++i) {
    auto x = random.next();
    SCOPED_TRACE("mutation " + std::to_string(i) + " of " + x.shape->name + ": " + x.body);
    check(x, random, count);
    if (HasFatalFailure()) return;
  }
  std::printf("%llu mutations: %zu answers, %zu faults of the policy, %zu bodies that are no "
              "completion any more\n",
              static_cast<unsigned long long>(wanted), count.answers, count.policy, count.unread);
  EXPECT_EQ(count.ours, count.unread);
  EXPECT_GT(count.calls, wanted / 20);
  EXPECT_GT(count.answers, wanted / 4);
  EXPECT_GT(count.policy, wanted / 20);
}

} // namespace answer_mutation_test
} // namespace kernelmill
