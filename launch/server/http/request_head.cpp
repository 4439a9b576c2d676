#include "launch/server/http/request_head.hpp"

#include <algorithm>
#include <cctype>

namespace kernelmill::http {

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr const char* bad_line_end = "its lines must end with CR LF";
constexpr size_t most_digits = 18; // of a length: no 64 bits overflow

bool is_token(std::string_view x) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !x.empty() && std::all_of(x.begin(), x.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || others.find(static_cast<char>(c)) != others.npos;
  });
}

bool is_visible(std::string_view x) {
  return !x.empty() &&
         std::all_of(x.begin(), x.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

bool has_controls(std::string_view x) {
  return std::any_of(x.begin(), x.end(),
                     [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

std::string_view without_blanks(std::string_view x) {
  auto first = x.find_first_not_of(" \t");
  if (first == x.npos) return {};
  return x.substr(first, x.find_last_not_of(" \t") - first + 1);
}

bool is_same(std::string_view x, std::string_view lower) {
  return std::equal(x.begin(), x.end(), lower.begin(), lower.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

std::string fault_of_first(std::string_view line, bool& is_newest) {
  auto first = line.find(' ');
  auto last = line.rfind(' ');
  if (first == line.npos || last == first) return "its first line must be METHOD TARGET VERSION";
  auto version = line.substr(last + 1);
  is_newest = version == "HTTP/1.1";
  if (!is_newest && version != "HTTP/1.0") return "its version must be HTTP/1.1 or HTTP/1.0";
  if (!is_token(line.substr(0, first))) return "its method is none";
  if (!is_visible(line.substr(first + 1, last - first - 1))) return "its target is none";
  return {};
}

/// The headers by which a request is framed and routed.
struct framing {
  size_t hosts = 0, lengths = 0, encodings = 0;

  std::string add(std::string_view name, std::string_view value) {
    hosts += is_same(name, "host") ? 1 : 0;
    encodings += is_same(name, "transfer-encoding") ? 1 : 0;
    if (!is_same(name, "content-length")) return {};
    ++lengths;
    bool is_number =
        !value.empty() && value.size() <= most_digits &&
        std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? "" : "the body's length is no number";
  }

  std::string fault(bool is_newest) const {
    if (hosts > 1 || (hosts == 0 && is_newest)) return "it must have one Host";
    if (lengths > 1 || encodings > 1) return "the body's length is given twice";
    if (lengths > 0 && encodings > 0)
      return "the body's length is given beside a transfer encoding";
    if (encodings > 0 && !is_newest) return "HTTP/1.0 has no transfer encoding";
    return {};
  }
};

std::string fault_of_header(std::string_view line, framing& seen) {
  if (line.front() == ' ' || line.front() == '\t') return "a header may not continue on a new line";
  auto colon = line.find(':');
  if (colon == line.npos) return "a header has no colon";
  auto name = line.substr(0, colon);
  if (!is_token(name)) return "a header's name is none";
  auto value = line.substr(colon + 1);
  if (has_controls(value)) return "a header has control characters";
  return seen.add(name, without_blanks(value));
}

} // namespace

std::string head_fault(std::string_view head) {
  bool is_newest = false;
  bool is_first = true;
  framing seen;
  while (true) {
    auto end = head.find('\n');
    if (end == head.npos || end == 0 || head[end - 1] != '\r') return bad_line_end;
    auto line = head.substr(0, end - 1);
    head.remove_prefix(end + 1);
    if (line.empty() && !is_first) return seen.fault(is_newest);
    if (line.find('\r') != line.npos) return bad_line_end;
    auto fault = is_first ? fault_of_first(line, is_newest) : fault_of_header(line, seen);
    if (!fault.empty()) return fault;
    is_first = false;
  }
}

size_t head_scan::take(std::string_view piece) {
  size_t taken = 0;
  while (taken < piece.size() && !whole_ && !bare_) {
    auto end = piece.find('\n', taken);
    auto next = end == piece.npos ? piece.size() : end + 1;
    head_ += piece.substr(taken, next - taken);
    taken = next;
    if (end == piece.npos) break;
    std::string_view seen = head_;
    bare_ = !seen.ends_with(line_end);
    whole_ = seen.ends_with("\r\n\r\n") || seen == line_end;
  }
  return taken;
}

std::string head_scan::fault() const {
  if (bare_) return bad_line_end;
  return whole_ ? head_fault(head_) : std::string{};
}

} // namespace kernelmill::http
