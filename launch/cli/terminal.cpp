#include "launch/cli/terminal.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "launch/cli/output.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "messages/categories.hpp"

namespace kernelmill::cli {

namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

// The error's own hint; without one, the hint that the page on errors has for its category.
std::string next_step(const error& x) {
  if (!x.hint.empty()) return x.hint;
  const auto* known = find_category(x.cls, x.category);
  bool is_said = !known || known->next.starts_with("the message") ||
                 known->next.starts_with("see the message");
  return is_said ? std::string{} : std::string{known->next};
}

bool reader_gone = false;
std::atomic<bool> quiet{false};
std::atomic<bool> activity_shown{false};

constexpr const char* erased_line = "\r\x1b[K";

void end_activity() {
  if (activity_shown.exchange(false)) std::fputs(erased_line, stderr);
}

void to_stderr(std::string_view text) {
  end_activity();
  // One write: lines of several threads do not mix.
  auto line = std::string{text} + "\n";
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace

bool wants_colour(int descriptor, const std::string& when) {
  if (when == "always") return true;
  if (when == "never" || is_set("NO_COLOR")) return false;
  if (is_set("CLICOLOR_FORCE")) return true;
  const char* term = std::getenv("TERM");
  return ::isatty(descriptor) && term && std::string_view{term} != "dumb";
}

std::string paint(bool enabled, colour c, std::string_view text) {
  if (!enabled || c == colour::none) return std::string{text};
  const char* code = c == colour::red      ? "31"
                     : c == colour::green  ? "32"
                     : c == colour::yellow ? "33"
                     : c == colour::bold   ? "1"
                                           : "2";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string clean(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    auto n = utf8_length(text.substr(i));
    auto c = static_cast<unsigned char>(text[i]);
    if (n == 0) {
      result += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    // U+0080 to U+009F are control characters too: CSI is U+009B.
    bool control = (n == 1 && ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)) ||
                   (n == 2 && c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0);
    if (!control) result.append(text, i, n);
    i += n;
  }
  return result;
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  auto whole = static_cast<long long>(seconds);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string format_bytes(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

void show_activity(std::string_view words) {
  if (words.empty()) return end_activity();
  if (quiet || ::isatty(2) != 1) return;
  auto line = erased_line + std::string{words} + " ...";
  activity_shown = true;
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void print(std::string_view text) {
  if (prints_tables_alone()) return drop_text();
  print_all(text);
}

void print_all(std::string_view text) {
  end_activity();
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && errno == EPIPE)
    reader_gone = true;
}

void print_now(std::string_view text) {
  print(text);
  errno = 0;
  if (std::fflush(stdout) != 0 && errno == EPIPE) reader_gone = true;
}

output_state finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return output_state::written;
  // An earlier write met the error: of a pipe without a reader the system says so still.
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  bool gone =
      reader_gone || errno == EPIPE || (::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0);
  return gone ? output_state::reader_gone : output_state::lost;
}

void talk(std::string_view text) {
  if (!quiet) to_stderr(text);
}

void keep_quiet(bool on) {
  quiet = on;
}

void print_json(const nlohmann::ordered_json& document) {
  nlohmann::ordered_json result = {{"schema_version", document_version}};
  for (const auto& [key, value] : document.items())
    if (key != "schema_version") result[key] = value;
  print(document_text(result));
}

void print_error(const error& x, bool json, bool colour) {
  auto next = next_step(x);
  if (json) {
    nlohmann::ordered_json document;
    document["error"] = {{"class", std::string{to_string(x.cls)}},
                         {"category", x.category},
                         {"message", x.message},
                         {"hint", next}};
    to_stderr(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  auto tell = [&](const std::string& first, cli::colour shade, const std::string& text) {
    auto lines = hanging("", 0, first + " " + clean(text), terminal_width(2));
    lines.pop_back(); // its newline
    to_stderr(paint(colour, shade, first) + lines.substr(first.size()));
  };
  tell("kernelmill: error:", cli::colour::red, x.message);
  if (!next.empty()) tell("next:", cli::colour::bold, next);
}

} // namespace kernelmill::cli
