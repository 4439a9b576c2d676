#pragma once

// Calls as Qwen3-Coder writes them, between its <tool_call> tags:
//
//   <function=write_candidate>
//   <parameter=source>
//   int x;
//   </parameter>
//   </function>
//
// A value stands as it is, without escapes, between one line break and another that are not its
// own. So a value that holds one of these tags could be read in two ways, and is refused.

#include <string_view>
#include <vector>

#include "actors/policy_client/protocol/tool_call.hpp"

namespace kernelmill {

/// Whether a block, without blanks around it, is meant in this form.
bool is_xml_call(std::string_view block);

/// Adds the calls of a block and returns "", or why it has none; then `to` is as it was. Each
/// argument is a text: what it is by the tool's schema is told where that is known. Takes time
/// linear in the block's length.
const char* read_xml_calls(std::string_view block, std::vector<tool_call>& to);

} // namespace kernelmill
