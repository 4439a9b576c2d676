#include "messages/log/line.hpp"

#include <array>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr size_t longest_message = 4096;

constexpr std::array<std::pair<log_level, std::string_view>, 5> names{{
    {log_level::trace, "trace"},
    {log_level::debug, "debug"},
    {log_level::info, "info"},
    {log_level::warn, "warn"},
    {log_level::error, "error"},
}};

// C0, DEL and C1; line and paragraph separators; marks that turn the direction of a text.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string escape_of(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code < 0x80 ? fmt::format("\\x{:02x}", uint32_t{code})
                     : fmt::format("\\u{:04x}", uint32_t{code});
}

std::string cut(std::string_view text) {
  if (text.size() <= longest_message) return std::string{text};
  auto kept = utf8_prefix(text, longest_message);
  return fmt::format("{} ... ({} bytes more)", kept, text.size() - kept.size());
}

// A value that a program splits at blanks and at '='.
std::string field(const char* name, std::string_view value) {
  if (value.empty()) return {};
  auto text = escape_controls(value);
  bool plain = text.find_first_of(" =\"\\") == text.npos;
  return fmt::format(" {}={}", name, plain ? text : nlohmann::json(text).dump());
}

std::string text_line(const std::string& time, log_level level, const log_place& place,
                      std::string_view message) {
  auto result = fmt::format("{} {:<5}", time, to_string(level));
  result += field("actor", place.actor) + field("run", place.run) + field("episode", place.episode);
  if (place.turn) result += fmt::format(" turn={}", *place.turn);
  return result + " | " + escape_controls(cut(message));
}

std::string json_line(const std::string& time, log_level level, const log_place& place,
                      std::string_view message) {
  nlohmann::ordered_json x = {{"time", time}, {"level", to_string(level)}};
  auto put = [&](const char* name, std::string_view value) {
    if (!value.empty()) x[name] = value;
  };
  put("actor", place.actor);
  put("run", place.run);
  put("episode", place.episode);
  if (place.turn) x["turn"] = *place.turn;
  x["message"] = cut(message);
  // In ASCII alone: nothing is left that a terminal obeys.
  return x.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

} // namespace

std::string_view to_string(log_level x) noexcept {
  for (const auto& [level, name] : names)
    if (level == x) return name;
  return "error";
}

std::optional<log_level> parse_log_level(std::string_view text) noexcept {
  for (const auto& [level, name] : names)
    if (name == text) return level;
  return std::nullopt;
}

std::string escape_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto length = utf8_length(text);
    auto next = text.substr(0, length);
    if (length == 0)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (auto code = utf8_character(next); is_control(code))
      result += escape_of(code);
    else
      result += next;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string log_line(log_format format, std::chrono::system_clock::time_point when, log_level level,
                     const log_place& place, std::string_view message) {
  using namespace std::chrono;
  auto milli = duration_cast<milliseconds>(when.time_since_epoch()).count();
  auto time = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z",
                          fmt::gmtime(static_cast<std::time_t>(milli / 1000)), milli % 1000);
  return format == log_format::json ? json_line(time, level, place, message)
                                    : text_line(time, level, place, message);
}

} // namespace kernelmill
