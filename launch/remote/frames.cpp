#include "launch/remote/frames.hpp"

#include <algorithm>

#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill::remote {

namespace {

constexpr size_t deepest_head = 8;
constexpr size_t most_error_text = 4096;

// Words of the other end go to a terminal.
std::string printable(std::string text) {
  if (text.size() > most_error_text) text.resize(most_error_text);
  for (auto& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

bool is_verb(const std::string& x) {
  return !x.empty() && x.size() <= 16 &&
         std::all_of(x.begin(), x.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

} // namespace

tl::unexpected<error> broken_rules(const std::string& what) {
  return infrastructure_error(
      "remote_protocol", "failed to understand the other end of the session: " + what,
      "nothing of it was used; look at that host, and whether both ends run "
      "the same Kernelmill");
}

std::string encode(const frame& x) {
  auto head = x.head;
  head["verb"] = x.verb;
  head["bytes"] = x.payload.size();
  return head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" + x.payload;
}

frame error_frame(const error& x) {
  return {"error",
          {{"class", std::string{to_string(x.cls)}},
           {"category", x.category},
           {"message", x.message.substr(0, most_error_text)},
           {"hint", x.hint.substr(0, most_error_text)}}};
}

error error_of(const frame& x) {
  auto cls = text_in(x.head, "class") == "configuration" ? fault_class::configuration
                                                         : fault_class::infrastructure;
  auto category = text_in(x.head, "category");
  bool known = !category.empty() && category.size() <= 64 &&
               std::all_of(category.begin(), category.end(),
                           [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return {cls, known ? category : "remote_protocol", printable(text_in(x.head, "message")),
          printable(text_in(x.head, "hint"))};
}

expected<std::optional<frame>> frame_reader::next() {
  auto end = bytes_.find('\n');
  if (end == std::string::npos) {
    if (bytes_.size() > most_head) return broken_rules("a line of it has no end");
    return std::optional<frame>{};
  }
  if (end > most_head) return broken_rules("a line of it is too long");
  auto line = std::string_view{bytes_}.substr(0, end);
  if (nests_deeper(line, deepest_head)) return broken_rules("a line of it nests too deep");
  auto head = nlohmann::json::parse(std::string{line}, nullptr, false);
  if (!head.is_object()) return broken_rules("a line of it is no JSON object");
  auto verb = text_in(head, "verb");
  if (!is_verb(verb)) return broken_rules("a line of it has no verb");
  auto size = count_in(head, "bytes", most_payload + 1);
  if (size > most_payload) return broken_rules("a frame of it is too large");
  if (bytes_.size() - end - 1 < size) return std::optional<frame>{};
  frame result{std::move(verb), std::move(head), bytes_.substr(end + 1, size)};
  bytes_.erase(0, end + 1 + size);
  return std::optional<frame>{std::move(result)};
}

} // namespace kernelmill::remote
