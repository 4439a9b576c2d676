#pragma once

// The tokenizer and the chat template of a scripted server that behaves like an engine. A token is
// one to three bytes of text and its id is those bytes, so ids can be turned back into text by any
// server at any time: nothing has to be remembered, and a restart changes nothing. Two ids mark
// where a message begins and ends; text never becomes one of them unless that is asked for.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct scripted_message {
  std::string role;
  std::string content;
};

namespace vocabulary {

inline constexpr int32_t message_start = 1 << 25;
inline constexpr int32_t message_end = message_start + 1;
inline constexpr std::string_view start_text = "<|start|>";
inline constexpr std::string_view end_text = "<|end|>";

/// How a text is cut. A model samples other cuts than the tokenizer would make; `sampled` does so
/// for every other word, so that a conversation rendered anew departs from what was sampled.
enum class cut : unsigned char { canonical, sampled };

std::vector<int32_t> encode(std::string_view text, cut how = cut::canonical);
/// The same, and the names of the two marks become the marks.
std::vector<int32_t> encode_with_marks(std::string_view text);
/// The text of one id; empty when there is no such id.
std::string decode(int32_t id);
std::string decode(const std::vector<int32_t>& ids);

/// The conversation as the model sees it. `strip_thoughts` leaves out what earlier answers
/// thought, as the templates of many reasoning models do.
std::vector<int32_t> render(const std::vector<scripted_message>& messages,
                            bool add_generation_prompt, bool strip_thoughts);

/// The way back: the messages that a prompt holds, without the one that is to be generated.
std::vector<scripted_message> messages_in(const std::vector<int32_t>& prompt);

} // namespace vocabulary

} // namespace kernelmill
