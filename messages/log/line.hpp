#pragma once

// One line of a log, from plain values: text for people, or a JSON object for programs. Servers and
// candidates have a say in messages, so nothing in a line can move a cursor, recolour a terminal or
// begin a line of its own.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelmill {

enum class log_level : unsigned char { trace, debug, info, warn, error };
std::string_view to_string(log_level x) noexcept;

/// Reads "trace", "debug", "info", "warn" or "error".
std::optional<log_level> parse_log_level(std::string_view text) noexcept;

enum class log_format : unsigned char { text, json };

/// What a line is about; what is not known stays empty and is left out.
struct log_place {
  std::string_view actor;
  std::string_view run;
  std::string_view episode; ///< "g0.e1"
  std::optional<uint32_t> turn;
};

/// Without a newline. A message above 4 KiB is cut, and says so.
std::string log_line(log_format format, std::chrono::system_clock::time_point when, log_level level,
                     const log_place& place, std::string_view message);

/// Writes control characters, those that turn the direction of a text, and bytes that are not UTF-8
/// as escapes: "\n", "\x1b", "\u009b".
std::string escape_controls(std::string_view text);

} // namespace kernelmill
