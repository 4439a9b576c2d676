#pragma once

// What a scripted policy server says, as data. A reply is chosen by what the prompt contains, task,
// member and turn; where several fit, the one that names more of them wins (in this order). After
// the last scripted turn of a task and member that turn's reply repeats.
//
//   {"model": "scripted-quickstart", "latency_ms": 20,
//    "replies": [{"task": "native/row_sum", "member": 0, "turn": 0,
//                 "thought": "...", "kernel": "kernels/row_sum_0.cpp"},
//                {"text": "I cannot do this."},
//                {"text": "I try it.", "tool_calls": [{"name": "eval", "arguments": {"n": 1}}]}],
//    "faults": [{"status": 503, "every": 7, "retry_after": 1}, {"kind": "stall", "times": 1}]}
//
// A call of a tool may have "files": {"source": "kernels/a.cpp"}: arguments that are texts of
// files. A request with tools gets calls as OpenAI's servers tell them, any other as <tool_call>
// blocks.
//
// For capacity planning and for trainers:
//
//   "kind": "vllm"                     openai, vllm, sglang or llamacpp: the routes that it has,
//                                      and how it counts and names tokens
//   "latency": {"kind": "lognormal", "median_ms": 900, "sigma": 0.6, "max_ms": 60000,
//               "per_token_ms": 8}     or {"kind": "uniform", "low_ms": .., "high_ms": ..}, or
//                                      {"kind": "constant", "ms": ..}; instead of latency_ms
//   "versions": [{"version": "step-1"}, {"version": "step-2", "from_request": 40}]
//                                      of the weights, by number of the completion from 1; POST
//                                      /update_weight_version {"new_version": ".."} changes it too
//   "drift": true                      engines sample cuts that the tokenizer would not make
//   "strip_thoughts": true             the chat template leaves out what earlier answers thought
//   "renders": false                   no route tokenizes messages, as on older SGLang
//   "tools": false                     a server that was started without a parser of tool calls
//
// Comments are allowed, unknown keys are not. Paths of kernels are relative to the script.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/policy_client/protocol/openai_protocol.hpp"
#include "launch/server/scripted/scripted_latency.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// What a reply or a fault applies to; what is not named is any.
struct script_match {
  std::optional<std::string> prompt; ///< a text that stands in the messages
  std::optional<std::string> task;
  std::optional<uint32_t> member;
  std::optional<uint32_t> turn;
};

struct scripted_reply {
  script_match match;
  std::string text; ///< the whole completion but for its calls
  std::string finish_reason = "stop";
  std::vector<tool_call> calls; ///< of tools; the server makes their ids
};

enum class fault_kind : unsigned char {
  status,   ///< answers `status` with an error body
  garbage,  ///< a 200 that is no JSON
  stall,    ///< nothing, for `seconds`; of a stream: one event, then nothing
  truncate, ///< the connection closes in the middle of the body
  reset,    ///< the connection closes before an answer
  abort,    ///< a completion with finish_reason "abort", as SGLang answers under pressure
  error,    ///< a 200 that carries an error object, in a stream after the first words
  huge,     ///< a completion of `bytes` bytes
};

/// Which requests it hits: all that match; with `every` N one in N turns, chosen by a hash of
/// episode and turn, and of such a turn the first request only. So a fault hits the same turns in
/// whatever order requests arrive, also when a run is resumed, and the attempt after it succeeds.
/// Requests without a session are counted instead. `times` N ends the fault after N hits.
struct scripted_fault {
  script_match match;
  fault_kind kind = fault_kind::status;
  int status = 500;
  std::optional<std::string> retry_after; ///< seconds or an HTTP date
  std::string message;
  std::string code;
  uint32_t every = 0;
  uint32_t times = 0;
  double seconds = 600;
  uint64_t bytes = uint64_t{64} << 20;
};

/// From this completion on, counted from 1, the weights have this version.
struct scripted_version {
  std::string version;
  uint64_t from_request = 1;
};

struct policy_script {
  std::string model = "scripted";
  server_kind kind = server_kind::openai;
  scripted_latency latency;
  std::vector<scripted_version> versions;
  bool drift = false;
  bool strip_thoughts = false;
  bool renders = true;
  bool tools = true;
  std::string require_key_env; ///< names the variable whose value clients must send as their key
  std::vector<scripted_reply> replies;
  std::vector<scripted_fault> faults;
};

expected<policy_script> load_policy_script(const std::filesystem::path& file);

/// `source` names the text in errors; `folder` is where paths start.
expected<policy_script> parse_policy_script(const std::string& text, const std::string& source,
                                            const std::filesystem::path& folder);

/// Returns "<think>...</think>", "<DIAGNOSIS>" and "<EVIDENCE>" where there is one, and "<KERNEL>"
/// with a fence.
std::string compose_completion(const std::string& thought, const std::string& diagnosis,
                               const std::string& evidence, const std::string& kernel);

} // namespace kernelmill
