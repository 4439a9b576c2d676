#pragma once

// JSON as nlohmann reads and writes it, several times faster where it counts: prompts and answers
// are a few long strings, and nlohmann takes those byte by byte. simdjson reads. Whatever is out of
// the ordinary (malformed text, numbers out of range, bytes that are not UTF-8) is left to
// nlohmann, so results never differ.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace kernelmill {

/// Returns what json::parse(text, nullptr, false) returns: a discarded value for a malformed text;
/// so also for one that nests deeper than deepest_json.
nlohmann::json read_json(std::string_view text);

/// Appends a text as a JSON string, with its quotes; bytes that are not UTF-8 become U+FFFD.
void append_json(std::string& to, std::string_view text);

/// Returns the compact text; bytes that are not UTF-8 become U+FFFD.
std::string write_json(const nlohmann::json& x);

} // namespace kernelmill
