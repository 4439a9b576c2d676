#pragma once

// In which form a command's results go to stdout: -o, --columns and --no-headers of every command.
// A command prints as ever; its tables and documents pass through here.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/cli/command.hpp"
#include "messages/error.hpp"

namespace kernelmill::cli {

/// Sets the form for this process, before a command prints, and `in.json` for documents. Errors:
/// "usage" for options that do not go together, or that the command's tables cannot have.
expected<void> choose_output(const command& x, invocation& in);

/// Leaves stdout to what another program printed: -o and --columns were its own.
void pass_output_through();

/// Whether tables alone are printed: with -o csv, --columns or --no-headers. Other texts are not.
bool prints_tables_alone();

/// Whether cells are for programs, as plain numbers in the unit of their header: with -o csv.
bool plain_cells();

/// "3 min 20 s", or "200.25" where plain_cells().
std::string seconds_or_plain(double seconds);

/// "12.5 %" of 0.125, or "12.5" where plain_cells().
std::string percent_or_plain(double share);

/// What people read in one column and programs in several, headers and cells alike: `shown`, or
/// `plain` where plain_cells().
std::vector<std::string> one_or_plain(std::string shown, std::vector<std::string> plain);

/// Headers of a value with its 95 % interval: NAME, or NAME, NAME LOW and NAME HIGH.
std::vector<std::string> interval_headers(const std::string& name);

/// The cells below them; without a value "-".
std::vector<std::string> interval_cells(std::string shown, std::optional<double> estimate,
                                        std::optional<double> low, std::optional<double> high);

/// "1.46" with up to six digits, or "-".
std::string plain_number(std::optional<double> x);

/// Puts several cells behind those that are there.
void add_cells(std::vector<std::string>& to, std::vector<std::string> more);

/// Notes that a text was not printed for that.
void drop_text();

/// Takes a table for the end of the command, where tables alone are printed; `columns` are as in
/// format_table().
void take_table(const std::vector<std::string>& columns,
                const std::vector<std::vector<std::string>>& rows, size_t width);

/// The tables that were taken; in CSV one, the first with the columns that were asked for. Errors:
/// "usage" when no table has the columns that were asked for, or texts were dropped and there is
/// none.
expected<std::string> taken_tables(const std::string& command);

/// A document as JSON, or as YAML with -o yaml.
std::string document_text(const nlohmann::ordered_json& document);

/// One of the lines of a command that prints a document a line: JSON, or with -o yaml an element
/// of a list.
std::string line_text(const nlohmann::ordered_json& row);

/// "best_speedup" of the header "BEST SPEEDUP".
std::string column_key(const std::string& header);

} // namespace kernelmill::cli
