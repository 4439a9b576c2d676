#include "actors/policy_client/protocol/sse_parser.hpp"

namespace kernelmill {

sse_parser::sse_parser(handler take, size_t limit) : take_(std::move(take)), limit_(limit) {
  // nop
}

bool sse_parser::feed(std::string_view bytes) {
  while (!stopped_ && !bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') bytes.remove_prefix(1);
      continue;
    }
    auto end = bytes.find_first_of("\r\n");
    if (!append(bytes.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (!end_line()) stopped_ = true;
  }
  return !stopped_;
}

bool sse_parser::append(std::string_view bytes) {
  if (line_.size() + event_.data.size() + bytes.size() > limit_) {
    overflowed_ = stopped_ = true;
    return false;
  }
  line_.append(bytes);
  return true;
}

bool sse_parser::end_line() {
  std::string_view line = line_;
  if (first_line_ && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  first_line_ = false;
  if (!line.empty()) {
    auto colon = line.find(':');
    auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (colon != 0) take_field(line.substr(0, colon), value);
    line_.clear();
    return true;
  }
  line_.clear();
  auto complete = has_data_;
  has_data_ = false;
  sse_event event;
  std::swap(event, event_);
  if (!complete) return true;
  event.data.pop_back();
  return take_(event);
}

void sse_parser::take_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    event_.data.append(value).push_back('\n');
    has_data_ = true;
  } else if (name == "event") {
    event_.type = value;
  }
  // `id` and `retry` serve reconnection, which a completion cannot use.
}

} // namespace kernelmill
