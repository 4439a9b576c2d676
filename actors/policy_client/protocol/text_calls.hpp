#pragma once

// Calls of tools in a model's own text, for where no server has read them out of it: answers of
// routes that take token ids, and models without a parser of their own.

#include <string>
#include <string_view>
#include <vector>

#include "actors/policy_client/protocol/tool_call.hpp"

namespace kernelmill {

/// More calls of one answer are not kept.
inline constexpr size_t max_tool_calls = 1024;

struct text_calls {
  std::string text;                  ///< the answer without its calls; what is broken stays in it
  std::vector<tool_call> calls;      ///< in order; their arguments are one JSON object each
  std::vector<std::string> problems; ///< what was meant as a call and is none, with an excerpt
  size_t surplus = 0;                ///< calls above the limit, which are not kept
};

/// Reads the forms in which models are trained:
///   <tool_call>{"name": ..., "arguments": {...}}</tool_call>   Hermes, Qwen
///   <tool_call><function=NAME><parameter=KEY>...               Qwen3-Coder (xml_calls.hpp)
///   [TOOL_CALLS] [{"name": ..., "arguments": {...}}]           Mistral; also NAME[ARGS]{...}
///   {"name": ..., "parameters": {...}}                         Llama 3, as the whole answer
/// The last block need not be closed: a stop text or the end of the answer closes it. A call is a
/// JSON object with a name that is text and arguments that are an object; JSON is mended as that of
/// servers is (mended_json.hpp): models put line breaks into strings as they are. What stands in
/// front of </think> is thought, and holds no calls. Takes time linear in the answer's length.
text_calls parse_text_calls(std::string_view answer);

} // namespace kernelmill
