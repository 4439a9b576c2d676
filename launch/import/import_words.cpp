#include "launch/import/import_words.hpp"

#include <algorithm>
#include <charconv>

#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr size_t longest_folder_name = 160;

} // namespace

bool is_folder_name(const std::string& x) {
  auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '+';
  };
  return !x.empty() && x.size() <= longest_folder_name && x.front() != '.' &&
         std::all_of(x.begin(), x.end(), fits);
}

std::string option_of(const suite_options& options, const std::string& name) {
  auto found = options.find(name);
  return found == options.end() ? std::string{} : found->second;
}

expected<size_t> count_of(const suite_options& options, const std::string& name, size_t low,
                          size_t high, size_t fallback) {
  if (!options.contains(name)) return fallback;
  auto text = option_of(options, name);
  size_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return configuration_error("usage", "failed to read " + name + ": \"" + text +
                                            "\" is not a number from " + std::to_string(low) +
                                            " to " + std::to_string(high));
  return value;
}

// JSON's escapes mean the same to Python; characters beyond ASCII stay as they are.
std::string python_literal(const std::string& x) {
  return nlohmann::json(x).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace kernelmill
