#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

/// What a completion says: a thought, one kernel, and for `diagnose` tasks a label and how counters
/// change.
struct parsed_completion {
  bool ok = false;                   ///< exactly one kernel could be taken from it
  std::string thought;               ///< inside <think> (also <thinking>), trimmed
  std::string kernel;                ///< inside <KERNEL>, fences removed
  size_t kernel_begin = 0;           ///< where the text holds the kernel, byte for byte
  std::string language;              ///< of the fence: "cpp", "cuda", "python", or empty
  std::string diagnosis;             ///< inside <DIAGNOSIS>, trimmed
  std::vector<std::string> evidence; ///< the lines inside <EVIDENCE>: "dram_bytes falls"
  std::vector<std::string> problems; ///< what is wrong, in the order of the text, for the policy
};

/// Parses any bytes; never throws. Fallbacks (a fenced block without <KERNEL>) are taken and named
/// in `problems`. Two different kernels, an unclosed tag, text that is not UTF-8 or holds NUL, and
/// a kernel of more than `max_kernel_bytes` are not `ok`.
parsed_completion parse_completion(std::string_view text, size_t max_kernel_bytes = 256 << 10);

/// The statements of a text: its lines, or what semicolons and commas part; at most 16.
std::vector<std::string> evidence_lines(std::string_view text);

/// Tells a policy whose answer was cut off how far it came: "the answer reached max_tokens = 4096
/// before a kernel began". `limit` says what it reached. Leaves an answer alone that is `ok`.
void explain_cut(parsed_completion& x, std::string_view text, std::string_view limit);

} // namespace kernelmill
