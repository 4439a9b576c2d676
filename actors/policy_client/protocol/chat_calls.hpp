#pragma once

// Calls of tools in what servers answer: whole, or in pieces of a stream.

#include "actors/policy_client/protocol/openai_protocol.hpp"

namespace kernelmill {

/// Adds the calls of a message, or the pieces of a delta. A piece belongs to the call of its
/// `index`; where a server numbers none, or all alike, a new name or id begins the next call.
void add_calls(completion_answer& answer, const std::optional<simdjson::dom::element>& words,
               bool streamed);

/// The words of calls, for where there are no tools: "NAME ARGUMENTS", one to a line.
std::string words_of_calls(const std::vector<tool_call>& calls);

/// Once all is there: of a request with tools, calls that no server has read are read out of the
/// text, and each gets an id that no other call of the conversation has.
void settle_calls(completion_answer& answer, wire::CompletionRequest::Reader request);

} // namespace kernelmill
