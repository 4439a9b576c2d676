#include "launch/server/scripted/scripted_calls.hpp"

#include <algorithm>

#include "messages/base/hash.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

using nlohmann::json;

std::string sampled_text(const std::string& text, const std::vector<tool_call>& calls) {
  auto result = text;
  for (const auto& x : calls) {
    if (!result.empty()) result += '\n';
    auto name = json(x.name).dump(-1, ' ', false, json::error_handler_t::replace);
    result +=
        "<tool_call>\n{\"name\": " + name + ", \"arguments\": " + x.arguments + "}\n</tool_call>";
  }
  return result;
}

bool offers_tools(const json& body) {
  auto tools = body.find("tools");
  return tools != body.end() && tools->is_array() && !tools->empty();
}

expected<std::vector<tool_call>> calls_of_message(const json& message) {
  std::vector<tool_call> result;
  auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return result;
  for (const auto& x : *calls) {
    auto function = x.is_object() && x.contains("function") ? x["function"] : json{};
    auto arguments = text_in(function, "arguments");
    // Engines read them for their templates.
    if (!json::accept(arguments))
      return policy_error("bad_request",
                          "failed to read the chat request: the arguments of a call are no JSON");
    result.push_back({text_in(x, "id"), text_in(function, "name"), std::move(arguments)});
  }
  return result;
}

json calls_of_answer(const scripted_request& request, const scripted_reply& reply,
                     const sampled_reply& sampled) {
  auto result = json::array();
  if (!request.tools || sampled.finish_reason == "length") return result;
  for (const auto& x : reply.calls) {
    // The same in every run, and in no other turn of the conversation.
    auto draw = hash_of(x.arguments, hash_of(x.name, mix(request.turn, result.size())));
    result.push_back({{"id", "call_" + std::to_string(draw)},
                      {"type", "function"},
                      {"function", {{"name", x.name}, {"arguments", x.arguments}}}});
  }
  return result;
}

std::vector<json> call_deltas(const json& calls) {
  constexpr size_t piece = 16;
  std::vector<json> result;
  auto add = [&](size_t index, json call) {
    call["index"] = index;
    result.push_back({{"tool_calls", json::array({std::move(call)})}});
  };
  // A piece may end within a character, which is no JSON.
  auto pieces = [](const std::string& text) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < text.size();) {
      auto end = std::min(at + piece, text.size());
      while (end < text.size() && continues_utf8(text[end])) ++end;
      parts.push_back(text.substr(at, end - at));
      at = end;
    }
    return parts;
  };
  std::vector<std::vector<std::string>> left;
  size_t longest = 0;
  for (const auto& x : calls) {
    auto first = x;
    left.push_back(pieces(first["function"]["arguments"].get<std::string>()));
    longest = std::max(longest, left.back().size());
    first["function"]["arguments"] = "";
    add(left.size() - 1, std::move(first));
  }
  for (size_t at = 0; at < longest; ++at)
    for (size_t i = 0; i < left.size(); ++i)
      if (at < left[i].size()) add(i, {{"function", {{"arguments", left[i][at]}}}});
  return result;
}

} // namespace kernelmill
