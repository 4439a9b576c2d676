#pragma once

#include <cstdint>
#include <string>

namespace kernelmill::commands {

/// What an export left out, as people read it: "3 episodes that have not ended" of the reason
/// "open_episodes".
std::string left_out_words(const std::string& reason, uint64_t count);

} // namespace kernelmill::commands
