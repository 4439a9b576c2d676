#pragma once

// Results go to stdout, messages to stderr.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/cli/command.hpp"
#include "messages/error.hpp"

namespace kernelmill::cli {

/// Whether to colour what goes to `descriptor`: `when` is auto, always or never. NO_COLOR and
/// TERM=dumb turn `auto` off, CLICOLOR_FORCE turns it on.
bool wants_colour(int descriptor, const std::string& when);

enum class colour : unsigned char { none, red, green, yellow, bold, dim };
std::string paint(bool enabled, colour c, std::string_view text);

/// Removes what could move the cursor or recolour a terminal: control bytes other than newline and
/// tab, and bytes that are not UTF-8 (as U+FFFD). For every text that a model or a candidate wrote.
std::string clean(std::string_view text);

/// Rows under headers, in columns. Columns whose header ends in '>' are right-aligned.
std::string format_table(const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows);

/// "1.234 s", "12 ms", "3 min 20 s".
std::string format_seconds(double seconds);

/// "1.5 GiB".
std::string format_bytes(double bytes);

void print(std::string_view text); ///< to stdout
/// What became of stdout: a full disk or a pipe without a reader shows only at the end.
enum class output_state : unsigned char { written, reader_gone, lost };
output_state finish_output();

/// To stderr, with a newline. With --json it says nothing: stderr is for one document then.
void talk(std::string_view text);
void keep_quiet(bool on); ///< for --json

/// The schema_version of every document that commands print.
inline constexpr int document_version = 1;

/// Prints one document to stdout, with schema_version first.
void print_json(const nlohmann::ordered_json& document);

/// Prints an error with its next step to stderr; as JSON when asked.
void print_error(const error& x, bool json, bool colour);

} // namespace kernelmill::cli
