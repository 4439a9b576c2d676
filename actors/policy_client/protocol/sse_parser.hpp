#pragma once

// Server-sent events from bytes that may be split anywhere, within a line end or a character too.
// Follows the HTML standard's event stream: CR, LF and CRLF end a line, a line that begins with a
// colon is a comment, several data lines make one event, an event ends at an empty line.

#include <functional>
#include <string>
#include <string_view>

namespace kernelmill {

struct sse_event {
  std::string type; ///< of the `event` field; empty: "message"
  std::string data; ///< without the last line end
};

class sse_parser {
public:
  using handler = std::function<bool(const sse_event&)>;

  /// `take` gets each event; false stops the parser. An event above `limit` bytes stops it too.
  explicit sse_parser(handler take, size_t limit = size_t{4} << 20);

  /// Takes the next bytes; false once the parser has stopped.
  bool feed(std::string_view bytes);

  /// True when nothing is left of an event that never ended.
  bool at_boundary() const noexcept { return line_.empty() && !has_data_; }
  bool overflowed() const noexcept { return overflowed_; }

private:
  bool end_line();
  bool append(std::string_view bytes);
  void take_field(std::string_view name, std::string_view value);

  handler take_;
  size_t limit_;
  std::string line_;
  sse_event event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
  bool overflowed_ = false;
  bool stopped_ = false;
};

} // namespace kernelmill
