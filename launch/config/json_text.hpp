#pragma once

// JSON with comments, and where in the text each key stands, so that every later complaint about
// a value can name its line.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct text_position {
  uint32_t line = 0;   ///< from 1
  uint32_t column = 0; ///< from 1, in bytes
};

struct json_text {
  std::string name; ///< of the file, as messages show it
  nlohmann::json value;
  std::map<std::string, text_position> positions; ///< "a.b" -> where its key stands
};

/// Parses `text`. Errors name line and column and show the line; a key that stands twice in one
/// object is an error, since whichever won would be a surprise.
expected<json_text> parse_json_text(std::string name, std::string_view text);

/// Reads and parses a file of at most 16 MiB. A missing file has category "config_not_found".
expected<json_text> read_json_file(const std::string& path);

} // namespace kernelmill
