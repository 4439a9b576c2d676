#include "actors/episode/clean_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr unsigned char escape = 0x1b;

unsigned char byte_at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// True when none of the eight bytes is NUL or above 0x7f.
bool all_plain(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  constexpr uint64_t high = 0x8080808080808080, low = 0x0101010101010101;
  return ((word | (word - low)) & high) == 0;
}

// Length of the terminal sequence that starts with the ESC at the front of `text`.
size_t terminal_sequence(std::string_view text) {
  if (text.size() < 2) return text.size();
  size_t i = 2;
  if (text[1] == '[') {
    while (i < text.size() && byte_at(text, i) >= 0x20 && byte_at(text, i) <= 0x3f) ++i;
    if (i < text.size() && byte_at(text, i) >= 0x40 && byte_at(text, i) <= 0x7e) ++i;
  } else if (text[1] == ']') {
    while (i < text.size() && byte_at(text, i) >= 0x20) ++i;
    if (i < text.size() && byte_at(text, i) == 0x07) ++i;
  } else if (byte_at(text, 1) < 0x20 || byte_at(text, 1) > 0x7e) {
    return 1;
  }
  return i;
}

// Of Llama 2, Mistral, Gemma, GLM and their kin, which have names of their own.
constexpr std::array<std::string_view, 26> named_marks = {"<tool_call>",
                                                          "</tool_call>",
                                                          "<tool_response>",
                                                          "</tool_response>",
                                                          "<s>",
                                                          "</s>",
                                                          "<bos>",
                                                          "<eos>",
                                                          "<pad>",
                                                          "<unk>",
                                                          "<sop>",
                                                          "<eop>",
                                                          "<start_of_",
                                                          "<end_of_",
                                                          "<beginning_of_",
                                                          "<<SYS>>",
                                                          "<</SYS>>",
                                                          "[INST]",
                                                          "[/INST]",
                                                          "[gMASK]",
                                                          "[TOOL_CALLS]",
                                                          "[TOOL_RESULTS]",
                                                          "[/TOOL_RESULTS]",
                                                          "[AVAILABLE_TOOLS]",
                                                          "[SYSTEM_PROMPT]",
                                                          "[/SYSTEM_PROMPT]"};

// Whether a mark begins at the front of a text: a known one, or one in the brackets that nearly
// all others have: <|im_end|>, <|eot_id|>, [|assistant|], and DeepSeek's with a bar of full width.
bool is_turn_mark(std::string_view text) {
  constexpr std::string_view wide_bar = "<\xEF\xBD\x9C";
  if (text.starts_with(wide_bar)) return true;
  if (text.starts_with("<|") || text.starts_with("[|")) {
    constexpr size_t longest = 64;
    auto name = text.substr(2, longest);
    auto end = name.find('|');
    return end != std::string_view::npos && end > 0 &&
           name.substr(0, end).find_first_of(" \t\n") == std::string_view::npos &&
           end + 1 < name.size() && name[end + 1] == (text.front() == '<' ? '>' : ']');
  }
  return std::any_of(named_marks.begin(), named_marks.end(),
                     [&](std::string_view x) { return text.starts_with(x); });
}

bool is_control(std::string_view sequence) {
  auto c = byte_at(sequence, 0);
  if (sequence.size() == 1) return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
  return sequence.size() == 2 && c == 0xc2 && byte_at(sequence, 1) < 0xa0; // U+0080 to U+009F
}

} // namespace

size_t first_bad_byte(std::string_view text) noexcept {
  size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size() && all_plain(text.data() + i)) {
      i += 8;
      continue;
    }
    auto length = utf8_length(text.substr(i));
    if (length == 0 || text[i] == '\0') return i;
    i += length;
  }
  return std::string_view::npos;
}

void disarm_turn_marks(std::string& text, size_t begin) {
  std::string result;
  size_t done = begin;
  for (auto at = text.find_first_of("<[", begin); at != std::string::npos;
       at = text.find_first_of("<[", at + 1)) {
    if (!is_turn_mark(std::string_view{text}.substr(at))) continue;
    result.append(text, done, at + 1 - done).push_back(' ');
    done = at + 1;
  }
  if (done == begin) return;
  result.append(text, done);
  text.replace(begin, std::string::npos, result);
}

void append_clean(std::string& out, std::string_view text, size_t max_bytes) {
  constexpr std::string_view cut = " [cut]";
  const size_t begin = out.size();
  size_t i = 0;
  while (i < text.size()) {
    auto c = byte_at(text, i);
    auto length = utf8_length(text.substr(i, 4));
    auto shown = length == 0 ? std::string_view{"?"} : text.substr(i, length);
    if (c == escape) {
      i += terminal_sequence(text.substr(i));
      continue;
    }
    i += length == 0 ? 1 : length;
    if (is_control(shown)) continue;
    if (out.size() - begin + shown.size() > max_bytes) {
      out += cut;
      break;
    }
    out += shown;
  }
  disarm_turn_marks(out, begin); // at the end: what was left out may have stood within one
}

} // namespace kernelmill
