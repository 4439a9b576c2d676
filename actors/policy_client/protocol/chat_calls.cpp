#include "actors/policy_client/protocol/chat_calls.hpp"

#include <set>

#include <fmt/format.h>

#include "actors/policy_client/protocol/json_view.hpp"
#include "actors/policy_client/protocol/text_calls.hpp"

namespace kernelmill {

namespace {

constexpr size_t longest_id = 64;

// The call that a piece belongs to; null when it is one too many.
tool_call* call_of(completion_answer& answer, std::optional<int64_t> index, const std::string& id,
                   const std::string& name) {
  auto& calls = answer.calls;
  if (index) {
    auto open = answer.open_calls.find(*index);
    if (open != answer.open_calls.end()) {
      auto& call = calls[open->second];
      if (id.empty() || call.id.empty() || id == call.id) return &call;
    }
  } else if (!calls.empty() && (id.empty() ? name.empty() : id == calls.back().id)) {
    return answer.surplus_calls > 0 ? nullptr : &calls.back();
  }
  if (calls.size() == max_tool_calls) {
    answer.surplus_calls += name.empty() ? 0 : 1;
    return nullptr;
  }
  if (index) answer.open_calls[*index] = calls.size();
  return &calls.emplace_back();
}

void add_piece(completion_answer& answer, std::optional<int64_t> index, std::string id,
               const json_found& function) {
  auto name = text_of(member(function, "name"));
  auto* call = call_of(answer, index, id, name);
  if (call == nullptr) return;
  auto before = call->id.size() + call->name.size() + call->arguments.size();
  if (call->id.empty()) call->id = std::move(id);
  if (call->name.empty()) call->name = std::move(name);
  auto arguments = member(function, "arguments");
  if (is_object(arguments))
    call->arguments += std::string{simdjson::minify(*arguments)};
  else
    call->arguments += text_of(arguments);
  answer.call_bytes += call->id.size() + call->name.size() + call->arguments.size() - before;
}

} // namespace

void add_calls(completion_answer& answer, const json_found& words, bool streamed) {
  constexpr int64_t legacy = -1;
  auto calls = list_in(member(words, "tool_calls"));
  if (!calls || calls->size() == 0) {
    // What OpenAI had before, for one call.
    auto function = member(words, "function_call");
    if (is_object(function)) add_piece(answer, legacy, {}, function);
    return;
  }
  for (auto x : *calls) {
    auto index = as<int64_t>(member(x, "index"));
    if (!streamed) index = static_cast<int64_t>(answer.calls.size());
    add_piece(answer, index, text_of(member(x, "id")), member(x, "function"));
  }
}

std::string words_of_calls(const std::vector<tool_call>& calls) {
  std::string result;
  for (const auto& x : calls) {
    if (!x.name.empty()) result += (result.empty() ? "" : "\n") + x.name + " ";
    result += x.arguments;
  }
  return result;
}

void settle_calls(completion_answer& answer, wire::CompletionRequest::Reader request) {
  if (request.getTools().size() == 0) return;
  answer.takes_calls = true;
  if (answer.calls.empty()) {
    auto read = parse_text_calls(answer.content);
    if (!read.calls.empty()) {
      answer.content = std::move(read.text);
      answer.calls = std::move(read.calls);
      answer.surplus_calls = read.surplus;
    }
  }
  std::set<std::string> taken;
  size_t number = 0;
  for (auto message : request.getMessages())
    for (auto x : message.getCalls()) {
      taken.emplace(x.getId().cStr(), x.getId().size());
      ++number;
    }
  for (auto& x : answer.calls) {
    ++number;
    if (!x.id.empty() && x.id.size() <= longest_id && taken.insert(x.id).second) continue;
    // Nine letters and digits: templates of Mistral take no others.
    do x.id = fmt::format("call{:05}", number);
    while (!taken.insert(x.id).second && ++number > 0);
  }
}

} // namespace kernelmill
