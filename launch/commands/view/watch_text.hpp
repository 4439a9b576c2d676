#pragma once

// What `watch` and `top` say of an episode that they follow.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill::commands {

/// A turn of the view "turns": a line, and below it its message. `document` is that of the view.
std::string committed_turn_text(const nlohmann::ordered_json& document,
                                const nlohmann::ordered_json& turn, bool colour);

/// What of the next turn has streamed in, in `width` columns; empty: nothing is known of it.
std::string streaming_text(const nlohmann::ordered_json& document, size_t width);

/// How the episode of a document of the view "turns" has ended.
std::string ended_episode_text(const nlohmann::ordered_json& document);

} // namespace kernelmill::commands
