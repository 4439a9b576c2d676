#include "launch/remote/order.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <sys/random.h>

#include "launch/remote/frames.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill::remote {

namespace {

constexpr size_t most_words = 4096;
constexpr unsigned most_columns = 4096;

expected<std::vector<std::string>> texts_in(const nlohmann::json& x, const char* key) {
  std::vector<std::string> result;
  auto at = x.find(key);
  if (at == x.end() || !at->is_array() || at->size() > most_words)
    return broken_rules(std::string{"an order has no "} + key);
  for (const auto& word : *at) {
    if (!word.is_string() || word.get_ref<const std::string&>().find('\0') != std::string::npos)
      return broken_rules(std::string{"a part of an order's "} + key + " is no text");
    result.push_back(word.get<std::string>());
  }
  return result;
}

terminal_shape read_terminal(const nlohmann::json& x) {
  terminal_shape result;
  result.out = flag_in(x, "out", false);
  result.err = flag_in(x, "err", false);
  result.columns =
      static_cast<unsigned>(std::min<uint64_t>(count_in(x, "columns", 0), most_columns));
  result.rows = static_cast<unsigned>(std::min<uint64_t>(count_in(x, "rows", 0), most_columns));
  auto type = text_in(x, "type");
  if (type.size() <= 64 && std::all_of(type.begin(), type.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '.' || c == '+';
      }))
    result.type = type;
  return result;
}

} // namespace

nlohmann::json to_json(const order& x) {
  const auto& t = x.terminal;
  return {{"words", x.words},
          {"inputs", to_json(x.inputs)},
          {"outputs", x.outputs},
          {"input", x.input},
          {"terminal",
           {{"out", t.out},
            {"err", t.err},
            {"columns", t.columns},
            {"rows", t.rows},
            {"type", t.type}}}};
}

expected<order> read_order(const std::string& text) {
  auto x = nests_deeper(text, 8) ? nlohmann::json{} : nlohmann::json::parse(text, nullptr, false);
  if (!x.is_object() || !x.contains("inputs")) return broken_rules("an order is no JSON object");
  order result;
  auto words = texts_in(x, "words");
  KM_TRY(words);
  if (words->empty()) return broken_rules("an order has no words");
  auto outputs = texts_in(x, "outputs");
  KM_TRY(outputs);
  if (!std::all_of(outputs->begin(), outputs->end(), safe_path))
    return broken_rules("a path of an order is not allowed");
  auto inputs = read_files(x["inputs"].dump());
  KM_TRY(inputs);
  result.words = std::move(*words);
  result.outputs = std::move(*outputs);
  result.inputs = std::move(*inputs);
  result.input = text_in(x, "input");
  if (!result.input.empty() && !safe_path(result.input))
    return broken_rules("a path of an order is not allowed");
  if (auto at = x.find("terminal"); at != x.end() && at->is_object())
    result.terminal = read_terminal(*at);
  return result;
}

bool is_session_id(const std::string& x) {
  return x.size() == 16 && std::all_of(x.begin(), x.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string new_session_id() {
  std::array<unsigned char, 8> bytes{};
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    // nop: a signal came
  }
  return to_hex(bytes.data(), bytes.size());
}

} // namespace kernelmill::remote
