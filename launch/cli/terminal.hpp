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

/// Columns of the terminal that `descriptor` is; else what COLUMNS says; 0 when both are
/// unknown: lines have no limit.
size_t terminal_width(int descriptor);

/// Columns that a text takes.
size_t columns_of(std::string_view text);

/// Lines of at most `width` columns, broken at blanks alone: a longer word has a line of its own.
/// Newlines stay. 0 columns: no end.
std::vector<std::string> fold(std::string_view text, size_t width);

/// A text behind `first`, which takes `indent` columns; its further lines stand below its first.
std::string hanging(std::string_view first, size_t indent, std::string_view text,
                    size_t width = terminal_width(1));

/// The words that fit into `width` columns, and "…" for the rest.
std::string shorten(std::string_view text, size_t width);

/// Rows under headers, in columns. Columns whose header ends in '>' are right-aligned. So that a
/// row fits into `width` columns, long cells are folded and the last ones stand below; 0: no end.
/// Empty where tables alone are printed (launch/cli/output.hpp): the table then stands for itself.
std::string format_table(const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows,
                         size_t width = terminal_width(1));

/// The same, as text in any case.
std::string layout_table(const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows, size_t width,
                         bool with_headers = true);

/// "1.234 s", "12 ms", "3 min 20 s".
std::string format_seconds(double seconds);

/// "1.5 GiB".
std::string format_bytes(double bytes);

/// To stdout; nothing where tables alone are printed.
void print(std::string_view text);
/// To stdout in any case.
void print_all(std::string_view text);
/// As print(), of a line that a reader of a pipe or a file waits for.
void print_now(std::string_view text);
/// What became of stdout: a full disk or a pipe without a reader shows only at the end.
enum class output_state : unsigned char { written, reader_gone, lost };
output_state finish_output();

/// Says on a terminal's stderr what a command is at, such as "compiling", until it says or prints
/// something else; "" takes that away. Elsewhere nothing.
void show_activity(std::string_view words);

/// To stderr, with a newline. With --json it says nothing: stderr is for one document then.
void talk(std::string_view text);
void keep_quiet(bool on); ///< for --json

/// The schema_version of every document that commands print.
inline constexpr int document_version = 1;

/// Prints one document to stdout, with schema_version first; as YAML with -o yaml.
void print_json(const nlohmann::ordered_json& document);

/// Prints an error with its next step to stderr; as JSON when asked.
void print_error(const error& x, bool json, bool colour);

} // namespace kernelmill::cli
