#include "actors/policy_client/json_text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

#include <nlohmann/json.hpp>

namespace kernelmill {

using nlohmann::json;

namespace {

// Deeper ones are left to nlohmann, which needs no stack for them.
constexpr int deepest = 64;

constexpr size_t word_size = sizeof(uint64_t);

// A byte becomes six at most.
constexpr size_t longest_escape = 6;

// Copies bytes that stand for themselves within a string: ASCII without control characters, quote
// and backslash. Eight at a time: in each byte of `hit` that matters the highest bit is set, and
// the lowest of them is exact. REQUIRES: behind `out` there is room for what is copied, and for a
// word more.
void copy_plain(const char*& p, const char* end, char*& out) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t ones = 0x0101010101010101;
  constexpr uint64_t tops = 0x8080808080808080;
  auto zero_bytes = [](uint64_t x) { return (x - ones) & ~x; };
  while (end - p >= static_cast<ptrdiff_t>(word_size)) {
    uint64_t x;
    std::memcpy(&x, p, word_size);
    std::memcpy(out, &x, word_size);
    auto hit = (x | ((x - ones * 0x20) & ~x) | zero_bytes(x ^ (ones * '"')) |
                zero_bytes(x ^ (ones * '\\'))) &
               tops;
    auto plain = hit == 0 ? word_size : static_cast<size_t>(std::countr_zero(hit)) / 8;
    p += plain;
    out += plain;
    if (hit != 0) return;
  }
  while (p < end && *p >= 0x20 && *p != '"' && *p != '\\') *out++ = *p++;
}

// Returns the length of the well-formed UTF-8 sequence at `p` whose first byte is above 0x7f; 0 for
// any other.
size_t sequence_at(const char* p, const char* end) {
  auto byte = [&](int i) { return static_cast<unsigned char>(p[i]); };
  auto first = byte(0);
  size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                  : first >= 0xe0 && first <= 0xef ? 3
                  : first >= 0xf0 && first <= 0xf4 ? 4
                                                   : 0;
  if (length == 0 || static_cast<size_t>(end - p) < length) return 0;
  auto second = byte(1);
  auto low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;  // shorter forms exist below
  auto high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf; // surrogates, and beyond U+10FFFF
  if (second < low || second > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((static_cast<unsigned char>(p[i]) & 0xc0) != 0x80) return 0;
  return length;
}

void put_code_point(char*& out, uint32_t x) {
  auto put = [&](uint32_t c) { *out++ = static_cast<char>(c); };
  if (x < 0x80) return put(x);
  if (x < 0x800) {
    put(0xc0 | (x >> 6));
  } else {
    if (x < 0x10000) {
      put(0xe0 | (x >> 12));
    } else {
      put(0xf0 | (x >> 18));
      put(0x80 | ((x >> 12) & 0x3f));
    }
    put(0x80 | ((x >> 6) & 0x3f));
  }
  put(0x80 | (x & 0x3f));
}

// Each function takes what it reads off the text, and answers false for what it leaves to nlohmann.
class reader {
public:
  explicit reader(std::string_view text)
      : p_(text.data()), end_(text.data() + text.size()), size_(text.size()) {}

  bool whole(json& to) {
    if (!value(to, 0)) return false;
    blanks();
    return p_ == end_;
  }

private:
  void blanks() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_;
  }

  bool take(char c) {
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }

  bool word(std::string_view text, json x, json& to) {
    if (static_cast<size_t>(end_ - p_) < text.size() || std::memcmp(p_, text.data(), text.size()))
      return false;
    p_ += text.size();
    to = std::move(x);
    return true;
  }

  bool value(json& to, int depth) {
    blanks();
    if (p_ == end_ || depth > deepest) return false;
    switch (*p_) {
      case '{': return object(to, depth);
      case '[': return array(to, depth);
      case '"': {
        to = json::string_t{};
        return string(to.get_ref<std::string&>());
      }
      case 't': return word("true", true, to);
      case 'f': return word("false", false, to);
      case 'n': return word("null", nullptr, to);
      default: return number(to);
    }
  }

  bool object(json& to, int depth) {
    ++p_;
    to = json::object();
    auto& members = to.get_ref<json::object_t&>();
    blanks();
    if (take('}')) return true;
    std::string key;
    for (;;) {
      blanks();
      key.clear();
      if (p_ == end_ || *p_ != '"' || !string(key)) return false;
      blanks();
      if (!take(':') || !value(members[key], depth + 1)) return false;
      blanks();
      if (take('}')) return true;
      if (!take(',')) return false;
    }
  }

  bool array(json& to, int depth) {
    ++p_;
    to = json::array();
    auto& elements = to.get_ref<json::array_t&>();
    blanks();
    if (take(']')) return true;
    for (;;) {
      if (!value(elements.emplace_back(), depth + 1)) return false;
      blanks();
      if (take(']')) return true;
      if (!take(',')) return false;
    }
  }

  // What is decoded is never longer than its text, so the scratch buffer always has room.
  bool string(std::string& to) {
    ++p_;
    if (!scratch_) scratch_ = std::make_unique_for_overwrite<char[]>(size_ + word_size);
    auto* out = scratch_.get();
    for (;;) {
      copy_plain(p_, end_, out);
      if (p_ == end_) return false;
      if (*p_ == '"') {
        ++p_;
        to.assign(scratch_.get(), out);
        return true;
      }
      if (*p_ == '\\') {
        if (!escape(out)) return false;
      } else {
        auto length = sequence_at(p_, end_);
        if (length == 0) return false;
        std::memcpy(out, p_, length);
        out += length;
        p_ += length;
      }
    }
  }

  bool escape(char*& out) {
    if (end_ - p_ < 2) return false;
    auto c = p_[1];
    p_ += 2;
    switch (c) {
      case '"':
      case '\\':
      case '/': *out++ = c; return true;
      case 'b': *out++ = '\b'; return true;
      case 'f': *out++ = '\f'; return true;
      case 'n': *out++ = '\n'; return true;
      case 'r': *out++ = '\r'; return true;
      case 't': *out++ = '\t'; return true;
      case 'u': return code_point(out);
      default: return false;
    }
  }

  bool unit(uint32_t& to) {
    if (end_ - p_ < 4) return false;
    auto [end, status] = std::from_chars(p_, p_ + 4, to, 16);
    if (status != std::errc{} || end != p_ + 4) return false;
    p_ = end;
    return true;
  }

  bool code_point(char*& out) {
    uint32_t x = 0;
    if (!unit(x) || (x >= 0xdc00 && x <= 0xdfff)) return false;
    if (x >= 0xd800 && x <= 0xdbff) {
      uint32_t low = 0;
      if (!take('\\') || !take('u') || !unit(low) || low < 0xdc00 || low > 0xdfff) return false;
      x = 0x10000 + ((x - 0xd800) << 10) + (low - 0xdc00);
    }
    put_code_point(out, x);
    return true;
  }

  // Returns how many digits follow.
  size_t digits() {
    const auto* first = p_;
    while (p_ < end_ && *p_ >= '0' && *p_ <= '9') ++p_;
    return static_cast<size_t>(p_ - first);
  }

  bool number(json& to) {
    const auto* first = p_;
    auto negative = take('-');
    auto zero = p_ < end_ && *p_ == '0';
    auto whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    auto integer = true;
    if (take('.')) {
      integer = false;
      if (digits() == 0) return false;
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('+')) take('-');
      if (digits() == 0) return false;
    }
    if (integer && negative) return convert<json::number_integer_t>(first, to);
    if (integer) return convert<json::number_unsigned_t>(first, to);
    return convert<json::number_float_t>(first, to);
  }

  template <class T>
  bool convert(const char* first, json& to) {
    T x{};
    auto [end, status] = std::from_chars(first, p_, x);
    if (status != std::errc{} || end != p_) return false;
    to = x;
    return true;
  }

  const char* p_;
  const char* end_;
  size_t size_;
  std::unique_ptr<char[]> scratch_;
};

// The two characters that stand for one, or zero.
char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\': return c;
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
  }
}

// Takes one byte or one sequence that does not stand for itself; false when it is not UTF-8.
bool put_escaped(const char*& p, const char* end, char*& out) {
  constexpr auto hex = "0123456789abcdef";
  if (static_cast<unsigned char>(*p) >= 0x80) {
    auto length = sequence_at(p, end);
    if (length == 0) return false;
    std::memcpy(out, p, length);
    out += length;
    p += length;
    return true;
  }
  *out++ = '\\';
  if (auto c = short_escape(*p)) {
    *out++ = c;
  } else {
    for (auto digit : {'u', '0', '0', hex[*p >> 4], hex[*p & 15]}) *out++ = digit;
  }
  ++p;
  return true;
}

// Appends in pieces, each of which fits into the room that its worst case needs.
bool append_string(std::string& to, std::string_view text) {
  constexpr size_t piece = 1024;
  char room[piece * longest_escape + word_size];
  const auto* p = text.data();
  const auto* end = p + text.size();
  to.push_back('"');
  while (p < end) {
    const auto* stop = p + std::min(static_cast<size_t>(end - p), piece);
    auto* out = room;
    while (p < stop) {
      copy_plain(p, stop, out);
      // A sequence may cross the border of pieces: it is copied whole, and is as long as it was.
      if (p < stop && !put_escaped(p, end, out)) return false;
    }
    to.append(room, out);
  }
  to.push_back('"');
  return true;
}

std::string dumped(const json& x) {
  return x.dump(-1, ' ', false, json::error_handler_t::replace);
}

void append(std::string& to, const json& x) {
  auto comma = [&, first = true]() mutable {
    if (!first) to.push_back(',');
    first = false;
  };
  if (x.is_object()) {
    to.push_back('{');
    for (const auto& [key, value] : x.get_ref<const json::object_t&>()) {
      comma();
      append_json(to, key);
      to.push_back(':');
      append(to, value);
    }
    to.push_back('}');
  } else if (x.is_array()) {
    to.push_back('[');
    for (const auto& value : x) {
      comma();
      append(to, value);
    }
    to.push_back(']');
  } else if (x.is_string()) {
    append_json(to, x.get_ref<const std::string&>());
  } else {
    to += dumped(x);
  }
}

// About how long the text will be; a long string has some escapes.
size_t size_hint(const json& x) {
  constexpr size_t other = 16;
  if (x.is_string()) {
    auto size = x.get_ref<const std::string&>().size();
    return size + size / 8 + other;
  }
  auto result = other;
  if (x.is_structured())
    for (const auto& value : x) result += size_hint(value) + other;
  return result;
}

} // namespace

void append_json(std::string& to, std::string_view text) {
  auto before = to.size();
  if (append_string(to, text)) return;
  to.resize(before);
  to += dumped(json(text));
}

json read_json(std::string_view text) {
  json result;
  if (reader{text}.whole(result)) return result;
  return json::parse(text, nullptr, false);
}

std::string write_json(const json& x) {
  std::string result;
  result.reserve(size_hint(x));
  append(result, x);
  return result;
}

} // namespace kernelmill
