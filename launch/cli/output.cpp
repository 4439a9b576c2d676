#include "launch/cli/output.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::cli {

namespace {

using json = nlohmann::ordered_json;

struct taken_table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  size_t width = 0;
};

// Of the process, as stdout is.
struct output_state_of_process {
  bool csv = false, yaml = false, alone = false, headers = true;
  bool dropped = false;             ///< a text, since tables alone are printed
  std::vector<std::string> columns; ///< keys; empty: all
  std::vector<taken_table> tables;
};

output_state_of_process& output() {
  static output_state_of_process x;
  return x;
}

std::vector<std::string> keys_in(const std::string& list) {
  std::vector<std::string> result;
  for (size_t at = 0; at <= list.size();) {
    auto comma = std::min(list.find(',', at), list.size());
    if (auto key = column_key(list.substr(at, comma - at)); !key.empty()) result.push_back(key);
    at = comma + 1;
  }
  return result;
}

// -- tables ---------------------------------------------------------------------------------------

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string result = "\"";
  for (char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string result;
  for (size_t i = 0; i < cells.size(); ++i) result += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return result + "\n";
}

std::string text_of(const taken_table& x) {
  if (!output().csv) return layout_table(x.columns, x.rows, x.width, output().headers);
  std::string result;
  std::vector<std::string> keys;
  for (const auto& column : x.columns) keys.push_back(column_key(column));
  if (output().headers) result += csv_line(keys);
  for (auto row : x.rows) {
    std::replace(row.begin(), row.end(), std::string{"-"}, std::string{}); // no value
    result += csv_line(row);
  }
  return result;
}

std::string keys_text(const taken_table& x) {
  std::vector<std::string> keys;
  for (const auto& column : x.columns) keys.push_back(column_key(column));
  return joined(keys, ",");
}

/// The columns that were asked for, in that order; false when it lacks one.
bool narrow_to_columns(taken_table& x, const std::vector<std::string>& wanted) {
  std::vector<size_t> places;
  for (const auto& key : wanted) {
    // "time" chooses time_s, too.
    auto at = std::find_if(x.columns.begin(), x.columns.end(), [&](const std::string& column) {
      return column_key(column) == key || column_key(column.substr(0, column.find(" ["))) == key;
    });
    if (at == x.columns.end()) return false;
    places.push_back(static_cast<size_t>(at - x.columns.begin()));
  }
  auto take = [&](const std::vector<std::string>& from) {
    std::vector<std::string> result;
    for (auto i : places) result.push_back(i < from.size() ? from[i] : std::string{});
    return result;
  };
  x.columns = take(x.columns);
  for (auto& row : x.rows) row = take(row);
  return true;
}

tl::unexpected<error> no_table(const std::string& command) {
  return configuration_error("usage",
                             "failed to print '" + command + "': what it prints has no table",
                             "leave out --columns, --no-headers and -o csv");
}

tl::unexpected<error> no_columns(const std::string& command, const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& known) {
  std::string meant;
  for (const auto& key : wanted)
    if (meant.empty() && std::find(known.begin(), known.end(), key) == known.end())
      meant = closest(key, known);
  return configuration_error(
      "usage", "failed to print '" + command + "': no table has the columns " + joined(wanted),
      (meant.empty() ? "" : "did you mean '" + meant + "'? ") + ("there are " + joined(known)));
}

// REQUIRES: the command's columns are known.
expected<void> check_columns(const command& x, const std::vector<std::string>& wanted) {
  const auto& known = *x.columns;
  if (known.empty()) return no_table(x.name);
  bool all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& key) {
    return std::find(known.begin(), known.end(), key) != known.end();
  });
  return all ? expected<void>{} : no_columns(x.name, wanted, known);
}

// -- YAML -----------------------------------------------------------------------------------------

// A text that YAML could take for something else stands in quotes, as JSON writes it.
std::string yaml_text(const std::string& text) {
  static const std::vector<std::string> words{"true", "false", "null", "yes", "no",
                                              "on",   "off",   "y",    "n"};
  std::string lower = text;
  for (auto& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
               text.back() != ' ' && std::find(words.begin(), words.end(), lower) == words.end() &&
               std::all_of(text.begin(), text.end(), [](unsigned char c) {
                 return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == ' ';
               });
  return plain ? text : json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string yaml_scalar(const json& x) {
  return x.is_string() ? yaml_text(x.get<std::string>()) : x.dump();
}

bool is_inline(const json& x) {
  return !x.is_structured() || x.empty();
}

// `indent` blanks stand before each line but the first.
std::string yaml(const json& x, size_t indent) {
  if (is_inline(x)) return yaml_scalar(x) + "\n";
  const std::string pad(indent, ' ');
  std::string result;
  for (const auto& [key, value] : x.items()) {
    if (!result.empty()) result += pad;
    if (x.is_array())
      result += "- " + yaml(value, indent + 2);
    else if (is_inline(value))
      result += yaml_text(key) + ": " + yaml_scalar(value) + "\n";
    else
      result += yaml_text(key) + ":\n" + pad + "  " + yaml(value, indent + 2);
  }
  return result;
}

} // namespace

std::string column_key(const std::string& header) {
  std::string result;
  for (unsigned char c : header) {
    if (std::isalnum(c) || c == '.' || c >= 0x80)
      result += static_cast<char>(std::tolower(c));
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (result.ends_with('_')) result.pop_back();
  return result;
}

expected<void> choose_output(const command& x, invocation& in) {
  auto format = in.value("--output");
  auto& to = output();
  to = {};
  to.csv = format == "csv";
  to.yaml = format == "yaml";
  to.headers = !in.has("--no-headers");
  if (in.has("--columns")) to.columns = keys_in(in.value("--columns"));
  to.alone = to.csv || !to.headers || in.has("--columns");
  bool wants_json = in.has("--json") || format == "json" || to.yaml;
  auto refused = [](const std::string& what, const std::string& next) {
    return configuration_error("usage", "failed to choose the output: " + what, next);
  };
  if (in.has("--json") && !format.empty() && format != "json")
    return refused("--json and -o " + format + " exclude each other", "keep one of them");
  if (in.has("--columns") && to.columns.empty())
    return refused("--columns names none", "such as --columns run,state");
  if (wants_json && to.alone)
    return refused("--columns and --no-headers are for tables",
                   "leave them out, or use -o table or -o csv");
  if (to.alone && x.columns) KM_TRY(check_columns(x, to.columns));
  in.json = wants_json;
  return {};
}

void pass_output_through() {
  output() = {};
}

bool prints_tables_alone() {
  return output().alone;
}

bool plain_cells() {
  return output().csv;
}

std::string seconds_or_plain(double seconds) {
  return plain_cells() ? fmt::format("{:.6g}", seconds) : format_seconds(seconds);
}

std::string percent_or_plain(double share) {
  return plain_cells() ? fmt::format("{:.4g}", 100 * share) : fmt::format("{:.1f} %", 100 * share);
}

std::vector<std::string> one_or_plain(std::string shown, std::vector<std::string> plain) {
  if (plain_cells()) return plain;
  return {std::move(shown)};
}

std::vector<std::string> interval_headers(const std::string& name) {
  return one_or_plain(name, {name, name + " LOW", name + " HIGH"});
}

std::vector<std::string> interval_cells(std::string shown, std::optional<double> estimate,
                                        std::optional<double> low, std::optional<double> high) {
  return one_or_plain(std::move(shown),
                      {plain_number(estimate), plain_number(low), plain_number(high)});
}

std::string plain_number(std::optional<double> x) {
  return x ? fmt::format("{:.6g}", *x) : "-";
}

void add_cells(std::vector<std::string>& to, std::vector<std::string> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void drop_text() {
  output().dropped = true;
}

void take_table(const std::vector<std::string>& columns,
                const std::vector<std::vector<std::string>>& rows, size_t width) {
  output().tables.push_back({columns, rows, width});
}

expected<std::string> taken_tables(const std::string& command) {
  auto& x = output();
  std::string result;
  std::vector<std::string> known;
  bool any = x.tables.empty();
  std::string others; // of which a CSV holds none
  if (any && x.dropped) return no_table(command);
  for (auto& table : x.tables) {
    for (const auto& column : table.columns)
      if (auto key = column_key(column); std::find(known.begin(), known.end(), key) == known.end())
        known.push_back(key);
    if (!x.columns.empty() && !narrow_to_columns(table, x.columns)) continue;
    if (x.csv && !result.empty()) {
      others += "\n  --columns " + keys_text(table);
      continue;
    }
    result += (result.empty() ? "" : "\n") + text_of(table);
    any = true;
  }
  x.tables.clear();
  if (!others.empty()) talk("a CSV holds one table; '" + command + "' has others:" + others);
  if (any) return result;
  return no_columns(command, x.columns, known);
}

std::string document_text(const json& document) {
  if (output().yaml) return yaml(document, 0);
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string line_text(const json& row) {
  return (output().yaml ? "- " : "") + row.dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

} // namespace kernelmill::cli
