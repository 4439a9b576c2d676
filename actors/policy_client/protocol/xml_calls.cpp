#include "actors/policy_client/protocol/xml_calls.hpp"

#include <algorithm>
#include <optional>

#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view function_open = "<function=", function_close = "</function>";
constexpr std::string_view value_open = "<parameter=", value_close = "</parameter>";

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// What stands between "=" and ">".
std::optional<std::string> take_name(std::string_view& text) {
  auto end = text.find('>');
  auto name = text.substr(0, end);
  bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  });
  if (end == std::string_view::npos || !plain) return std::nullopt;
  text.remove_prefix(end + 1);
  return std::string{name};
}

bool holds_tags(std::string_view value) {
  for (auto tag : {function_open, function_close, value_open})
    if (value.find(tag) != std::string_view::npos) return true;
  return false;
}

std::string_view without_frame(std::string_view value) {
  if (value.starts_with("\r\n"))
    value.remove_prefix(2);
  else if (value.starts_with('\n'))
    value.remove_prefix(1);
  if (value.ends_with("\r\n"))
    value.remove_suffix(2);
  else if (value.ends_with('\n'))
    value.remove_suffix(1);
  return value;
}

const char* read_arguments_of(std::string_view& text, nlohmann::json& to) {
  for (;;) {
    skip_blanks(text);
    if (take(text, function_close)) return "";
    if (!take(text, value_open)) return "has something other than <parameter=NAME> in a function";
    auto name = take_name(text);
    if (!name) return "has a parameter without a name";
    auto end = text.find(value_close);
    if (end == std::string_view::npos) return "has a parameter that is not closed";
    auto value = text.substr(0, end);
    if (holds_tags(value)) return "has a parameter with tags of calls in it";
    text.remove_prefix(end + value_close.size());
    if (to.contains(*name)) return "has a parameter twice";
    to[*name] = std::string{without_frame(value)};
  }
}

} // namespace

bool is_xml_call(std::string_view block) {
  return block.starts_with(function_open);
}

const char* read_xml_calls(std::string_view block, std::vector<tool_call>& to) {
  auto before = to.size();
  auto refuse = [&](const char* why) {
    to.resize(before);
    return why;
  };
  for (skip_blanks(block); !block.empty(); skip_blanks(block)) {
    if (!take(block, function_open)) return refuse("has something beside its <function=NAME>");
    auto name = take_name(block);
    if (!name) return refuse("has a function without a name");
    auto arguments = nlohmann::json::object(); // sorted: a model may write many keys
    if (const auto* why = read_arguments_of(block, arguments); *why != '\0') return refuse(why);
    using handler = nlohmann::json::error_handler_t;
    to.push_back({{}, std::move(*name), arguments.dump(-1, ' ', false, handler::replace)});
  }
  return to.size() > before ? "" : "has no function";
}

} // namespace kernelmill
