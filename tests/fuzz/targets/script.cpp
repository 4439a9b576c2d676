// Policy scripts, and what clients ask a scripted server.

#include "launch/server/scripted/policy_script.hpp"
#include "launch/server/scripted/scripted_kinds.hpp"
#include "messages/base/json_value.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

policy_script script_of(server_kind kind) {
  policy_script result;
  result.kind = kind;
  result.replies.push_back({{}, "<KERNEL>\nint x;\n</KERNEL>", "stop", {}});
  if (kind == server_kind::vllm) result.replies.back().calls = {{"", "run", "{\"n\":1}"}};
  result.drift = kind == server_kind::sglang;
  return result;
}

void ask(const policy_script& script, std::string_view body) {
  for (auto route : {scripted_route::chat, scripted_route::vllm_generate,
                     scripted_route::sglang_generate, scripted_route::llama_completion}) {
    auto request = read_request(route, script, body, "run/g3.e1");
    check(request);
    if (!request) continue;
    request->max_tokens = std::min<uint32_t>(request->max_tokens, 4096);
    const auto* reply = choose_reply(script, *request);
    if (reply == nullptr) continue;
    answer_body(route, *request, *reply, "id", 0);
    if (route == scripted_route::chat) chat_events(*request, *reply, "id", 0);
  }
  for (auto path : {"/tokenize", "/detokenize", "/v1/tokenize", "/apply-template",
                    "/update_weight_version", "/props"})
    answer_side_route(script, true, path, body, "v1");
}

} // namespace

void script(std::string_view bytes) {
  auto parsed = parse_policy_script(std::string{bytes}, "fuzz.json", "/nowhere");
  check(parsed);
  if (parsed) {
    promise(!parsed->replies.empty(), "a script has a reply");
    fault_schedule faults{parsed->faults};
    scripted_request request;
    request.session = "run/g0.e0";
    for (int i = 0; i < 4; ++i) faults.next(request);
    request.tools = true;
    const auto* reply = choose_reply(*parsed, request);
    if (reply != nullptr) chat_events(request, *reply, "id", 0);
  }
  static const policy_script scripts[] = {
      script_of(server_kind::openai), script_of(server_kind::vllm), script_of(server_kind::sglang),
      script_of(server_kind::llamacpp)};
  for (const auto& x : scripts) ask(x, bytes);
}

} // namespace kernelmill::fuzz
