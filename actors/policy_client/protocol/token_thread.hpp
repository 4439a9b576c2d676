#pragma once

// The thread of token ids that runs through an episode: what a turn's prompt and completion were,
// in the ids that the model saw and sampled. A trainer may only train on a later turn's prompt as
// the continuation of an earlier one when its ids go on from there; text that is tokenized anew
// seldom does. Plain functions on plain values.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "messages/policy.capnp.h"

namespace kernelmill {

using token_span = std::span<const int32_t>;

/// Prompt and completion of the last turn, one after the other.
struct token_thread {
  std::vector<int32_t> ids;
  uint32_t sampled = 0; ///< how many of them, at the end, were sampled
};

token_thread keep_thread(token_span prompt, token_span completion);

struct token_audit {
  wire::TokenState state = wire::TokenState::UNKNOWN;
  uint32_t position = 0;
  uint32_t kept = 0;
};

/// Says whether `prompt` goes on from what was kept. A first turn has nothing to go on from. A
/// later turn of which nothing was kept is a branch at 0, because the difference is unknown.
token_audit audit_tokens(bool first_turn, token_span kept, token_span prompt,
                         token_span completion);

size_t common_prefix(token_span a, token_span b) noexcept;
token_span common_suffix(token_span a, token_span b) noexcept;

/// The next prompt: the thread and what follows an answer in the template. `tail` begins where the
/// answer's content ends, so with the marks that close a message; the model has sampled those
/// itself when it ended by its own will, and they are not doubled. Nothing when either is empty.
std::optional<std::vector<int32_t>> extend_thread(const token_thread& thread, token_span tail);

} // namespace kernelmill
