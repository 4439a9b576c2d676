#include "actors/policy_client/protocol/json_text.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "actors/policy_client/protocol/json_view.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

using nlohmann::json;

namespace {

constexpr size_t vector_size = 16;

// A byte becomes six at most.
constexpr size_t longest_escape = 6;

// Copies bytes that stand for themselves within a string: ASCII without control characters, quote
// and backslash. REQUIRES: behind `out` there is room for what is copied, and for a vector more.
void copy_plain(const char*& p, const char* end, char*& out) {
#ifdef __SSE2__
  while (end - p >= static_cast<ptrdiff_t>(vector_size)) {
    auto x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), x);
    // Compared with sign, bytes above 0x7f are below the blank too.
    auto hit = _mm_or_si128(_mm_cmplt_epi8(x, _mm_set1_epi8(' ')),
                            _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')),
                                         _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'))));
    auto hits = static_cast<unsigned>(_mm_movemask_epi8(hit));
    auto plain = hits == 0 ? vector_size : static_cast<size_t>(std::countr_zero(hits));
    p += plain;
    out += plain;
    if (hits != 0) return;
  }
#endif
  while (p < end && *p >= ' ' && *p != '"' && *p != '\\') *out++ = *p++;
}

json tree_of(json_element x) {
  using simdjson::dom::element_type;
  switch (x.type()) {
    case element_type::OBJECT: {
      auto result = json::object();
      auto& members = result.get_ref<json::object_t&>();
      for (auto [key, value] : simdjson::dom::object{x}) members[std::string{key}] = tree_of(value);
      return result;
    }
    case element_type::ARRAY: {
      auto result = json::array();
      auto& elements = result.get_ref<json::array_t&>();
      for (auto value : simdjson::dom::array{x}) elements.push_back(tree_of(value));
      return result;
    }
    case element_type::STRING: return std::string{std::string_view{x}};
    case element_type::INT64: {
      auto value = int64_t{x};
      return value < 0 ? json(value) : json(static_cast<uint64_t>(value));
    }
    case element_type::UINT64: return uint64_t{x};
    case element_type::DOUBLE: return double{x};
    case element_type::BOOL: return bool{x};
    case element_type::NULL_VALUE: break;
  }
  return nullptr;
}

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
    auto length = utf8_length({p, static_cast<size_t>(end - p)});
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
  char room[piece * longest_escape + vector_size];
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
  if (nests_deeper(text)) return json::value_t::discarded;
  json_document document{text};
  if (auto root = document.root()) return tree_of(*root);
  return json::parse(text, nullptr, false);
}

std::string write_json(const json& x) {
  std::string result;
  result.reserve(size_hint(x));
  append(result, x);
  return result;
}

} // namespace kernelmill
