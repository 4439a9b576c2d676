#pragma once

// The parts of a request that are long: the conversation and the tools. They go into a body as
// texts, by way of no tree; all routes that take messages have them from here.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "messages/policy.capnp.h"

namespace kernelmill {

/// {"messages":[...],"tools":[...],"tool_choice":"...", and the `fields`}, an object with at least
/// one. Without tools in the request there are neither they nor a choice; an empty choice is left
/// out. With a `placeholder` the last answer is that text, and calls nothing.
///
/// Servers read calls that they are sent back, and refuse what they cannot read. So arguments that
/// are no JSON object are sent as {"arguments": "what the model wrote"}, and names have the
/// characters that OpenAI allows: no completion can make the next request a bad one.
std::string request_text(wire::CompletionRequest::Reader request, const nlohmann::json& fields,
                         std::string_view choice, const std::string* placeholder = nullptr);

} // namespace kernelmill
