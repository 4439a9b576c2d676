#include "messages/identity.hpp"

#include <charconv>

#include "messages/base/digest.hpp"

namespace kernelmill {

std::string short_name(const episode_id& x) {
  return "g" + std::to_string(x.group) + ".e" + std::to_string(x.member);
}

std::string short_name(const episode_id& x, uint32_t turn) {
  return short_name(x) + ".t" + std::to_string(turn);
}

std::string turn_id(const episode_id& x, uint32_t turn) {
  std::string text;
  text.reserve(x.run.size() + x.task.size() + 40);
  text.append(x.run).push_back('\0');
  text.append(x.task).push_back('\0');
  text.append(short_name(x, turn));
  return sha256_hex(text);
}

namespace {

uint64_t first_word(const sha256_digest& x) {
  uint64_t result = 0;
  for (size_t i = 0; i < sizeof result; ++i) result = result << 8 | x[i];
  return result;
}

} // namespace

uint64_t run_number(std::string_view run) {
  return first_word(sha256(run));
}

uint32_t request_seed(uint64_t run_seed, int64_t sampling_seed, const episode_id& x,
                      uint32_t turn) {
  auto text = std::to_string(run_seed) + "/" + std::to_string(sampling_seed) + "/" + x.task + "/" +
              short_name(x, turn);
  return static_cast<uint32_t>(first_word(sha256(text)) >> 33);
}

namespace {

// Takes "<letter><digits>" from the front of `text`.
std::optional<uint32_t> take(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return std::nullopt;
  uint32_t value = 0;
  auto [end, status] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take_dot(std::string_view& text) {
  if (text.empty() || text.front() != '.') return false;
  text.remove_prefix(1);
  return true;
}

} // namespace

std::optional<name_parts> parse_name(std::string_view text) {
  name_parts result;
  auto group = take(text, 'g');
  if (!group) return std::nullopt;
  result.group = *group;
  if (text.empty()) return result;
  if (!take_dot(text) || !(result.member = take(text, 'e'))) return std::nullopt;
  if (text.empty()) return result;
  if (!take_dot(text) || !(result.turn = take(text, 't')) || !text.empty()) return std::nullopt;
  return result;
}

} // namespace kernelmill
