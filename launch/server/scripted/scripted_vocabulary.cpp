#include "launch/server/scripted/scripted_vocabulary.hpp"

#include "launch/server/scripted/scripted_reply.hpp"

namespace kernelmill::vocabulary {

namespace {

constexpr int32_t pairs = 256;             // first id of two bytes
constexpr int32_t triples = pairs + 65536; // first id of three bytes
constexpr int32_t byte_count = 256;
constexpr size_t longest = 3;
constexpr size_t sampled_length = 2;

int32_t id_of(std::string_view piece) {
  int32_t value = 0;
  for (unsigned char c : piece) value = value * byte_count + c;
  return value + (piece.size() == 1 ? 0 : piece.size() == 2 ? pairs : triples);
}

void append(std::vector<int32_t>& to, const std::vector<int32_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::string without_thought(const std::string& text) {
  constexpr std::string_view closing = "</think>";
  auto end = text.rfind(closing);
  if (end == std::string::npos) return text;
  auto rest = text.find_first_not_of('\n', end + closing.size());
  return rest == std::string::npos ? std::string{} : text.substr(rest);
}

} // namespace

std::vector<int32_t> encode(std::string_view text, cut how) {
  std::vector<int32_t> result;
  bool other = false;
  // No token goes on after the end of a line, so that a role's line and what follows it are cut
  // alike whether they are cut together or not.
  while (!text.empty()) {
    auto line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    for (auto word : synthetic_tokens(line)) {
      auto length = how == cut::sampled && other ? sampled_length : longest;
      other = !other;
      for (size_t i = 0; i < word.size(); i += length)
        result.push_back(id_of(word.substr(i, length)));
    }
  }
  return result;
}

std::vector<int32_t> encode_with_marks(std::string_view text) {
  std::vector<int32_t> result;
  while (!text.empty()) {
    auto start = text.find(start_text), end = text.find(end_text);
    auto mark = std::min(start, end);
    append(result, encode(text.substr(0, mark)));
    if (mark == std::string_view::npos) break;
    result.push_back(mark == start ? message_start : message_end);
    text.remove_prefix(mark + (mark == start ? start_text : end_text).size());
  }
  return result;
}

std::string decode(int32_t id) {
  if (id == message_start) return std::string{start_text};
  if (id == message_end) return std::string{end_text};
  if (id < 0 || id >= message_start) return {};
  auto length = id < pairs ? 1 : id < triples ? 2 : 3;
  auto value = id - (length == 1 ? 0 : length == 2 ? pairs : triples);
  std::string result(static_cast<size_t>(length), '\0');
  for (auto i = result.size(); i-- > 0; value /= byte_count)
    result[i] = static_cast<char>(value % byte_count);
  return result;
}

std::string decode(const std::vector<int32_t>& ids) {
  std::string result;
  for (auto id : ids) result += decode(id);
  return result;
}

std::vector<int32_t> render(const std::vector<scripted_message>& messages,
                            bool add_generation_prompt, bool strip_thoughts) {
  std::vector<int32_t> result;
  auto open = [&](const std::string& role) {
    result.push_back(message_start);
    append(result, encode(role + "\n"));
  };
  for (const auto& x : messages) {
    open(x.role);
    auto stripped = strip_thoughts && x.role == "assistant";
    append(result, encode(stripped ? without_thought(x.content) : x.content));
    result.push_back(message_end);
    append(result, encode("\n"));
  }
  if (add_generation_prompt) open("assistant");
  return result;
}

std::vector<scripted_message> messages_in(const std::vector<int32_t>& prompt) {
  std::vector<scripted_message> result;
  std::string open;
  bool inside = false;
  for (auto id : prompt) {
    if (id == message_start) {
      open.clear();
      inside = true;
    } else if (id == message_end && inside) {
      auto line = std::min(open.find('\n'), open.size());
      result.push_back({open.substr(0, line), open.substr(std::min(line + 1, open.size()))});
      inside = false;
    } else if (inside) {
      open += decode(id);
    }
  }
  return result;
}

} // namespace kernelmill::vocabulary
