#pragma once

// Calls of tools of a scripted server: as a model samples them, as templates show them, and as a
// server that reads them out of the model's words tells them.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/server/scripted/scripted_reply.hpp"

namespace kernelmill {

/// The completion as a model samples it: calls stand behind the text, as <tool_call> blocks.
std::string sampled_text(const std::string& text, const std::vector<tool_call>& calls);

/// Whether a body offers tools.
bool offers_tools(const nlohmann::json& body);

/// "tool_calls" of an earlier answer in a request.
expected<std::vector<tool_call>> calls_of_message(const nlohmann::json& message);

/// "tool_calls" of an answer; empty where the request takes none, and of a completion that was cut.
nlohmann::json calls_of_answer(const scripted_request& request, const scripted_reply& reply,
                               const sampled_reply& sampled);

/// The deltas in which servers stream calls: names first, then arguments by and by, of all in turn.
std::vector<nlohmann::json> call_deltas(const nlohmann::json& calls);

} // namespace kernelmill
