#include "storage/journal/event_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace kernelmill {

namespace {

constexpr size_t head_bytes = 12, tail_bytes = 4;
constexpr size_t most_buckets = 30;

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> result{};
  for (uint32_t i = 0; i < 256; ++i) {
    auto x = i;
    for (int bit = 0; bit < 8; ++bit) x = (x >> 1) ^ ((x & 1) != 0 ? 0x82f63b78u : 0);
    result[i] = x;
  }
  return result;
}
constexpr auto crc_table = make_crc_table();

// -- protobuf -----------------------------------------------------------------------------------

enum wire_type : unsigned { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

// Fields of tensorflow's Event, Summary, Summary.Value and HistogramProto.
enum event_field : unsigned {
  wall_time_field = 1,
  step_field = 2,
  version_field = 3,
  summary_field = 5
};
enum value_field : unsigned { tag_field = 1, simple_field = 2, histogram_field = 5 };
constexpr unsigned value_of_summary = 1;
enum histogram_part : unsigned {
  least_part = 1,
  most_part = 2,
  count_part = 3,
  sum_part = 4,
  squares_part = 5,
  limits_part = 6,
  counts_part = 7
};

template <class T>
void put_little(std::string& to, T x) {
  static_assert(std::endian::native == std::endian::little);
  to.append(reinterpret_cast<const char*>(&x), sizeof x);
}

template <class T>
T get_little(std::string_view from) {
  T x;
  std::memcpy(&x, from.data(), sizeof x);
  return x;
}

void put_varint(std::string& to, uint64_t x) {
  for (; x >= 0x80; x >>= 7) to.push_back(static_cast<char>(x | 0x80));
  to.push_back(static_cast<char>(x));
}

void put_key(std::string& to, unsigned field, wire_type type) {
  put_varint(to, uint64_t{field} << 3 | type);
}

void put_double(std::string& to, unsigned field, double x) {
  put_key(to, field, eight_bytes);
  put_little(to, x);
}

void put_bytes(std::string& to, unsigned field, std::string_view bytes) {
  put_key(to, field, counted);
  put_varint(to, bytes.size());
  to += bytes;
}

void put_doubles(std::string& to, unsigned field, const std::vector<double>& xs) {
  put_bytes(to, field, {reinterpret_cast<const char*>(xs.data()), xs.size() * sizeof(double)});
}

struct proto_field {
  unsigned number = 0;
  wire_type type = varint;
  uint64_t integer = 0;
  std::string_view bytes; ///< of all types but varint
};

std::optional<uint64_t> take_varint(std::string_view& from) {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    auto c = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    result |= uint64_t{c & 0x7fu} << shift;
    if (c < 0x80) return result;
  }
  return std::nullopt;
}

std::optional<proto_field> take_field(std::string_view& from) {
  auto key = take_varint(from);
  if (!key) return std::nullopt;
  proto_field x;
  x.number = static_cast<unsigned>(*key >> 3);
  x.type = static_cast<wire_type>(*key & 7);
  std::optional<uint64_t> size;
  switch (x.type) {
    case varint:
      if (auto value = take_varint(from)) {
        x.integer = *value;
        return x;
      }
      return std::nullopt;
    case eight_bytes: size = 8; break;
    case counted: size = take_varint(from); break;
    case four_bytes: size = 4; break;
    default: return std::nullopt;
  }
  if (!size || *size > from.size()) return std::nullopt;
  x.bytes = from.substr(0, *size);
  from.remove_prefix(*size);
  return x;
}

/// Visits the fields of a message; false when it is none.
template <class F>
bool each_field(std::string_view message, F visit) {
  while (!message.empty()) {
    auto x = take_field(message);
    if (!x || !visit(*x)) return false;
  }
  return true;
}

// -- events ---------------------------------------------------------------------------------------

std::string encode_histogram(const std::vector<double>& values) {
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  auto buckets = *least == *most ? size_t{1} : most_buckets;
  auto width = (*most - *least) / static_cast<double>(buckets);
  std::vector<double> limits(buckets), counts(buckets, 0.0);
  for (size_t i = 0; i < buckets; ++i) limits[i] = *least + width * static_cast<double>(i + 1);
  limits.back() = *most;
  double sum = 0, squares = 0;
  for (auto x : values) {
    auto place = width > 0 ? static_cast<size_t>((x - *least) / width) : 0;
    counts[std::min(place, buckets - 1)] += 1;
    sum += x;
    squares += x * x;
  }
  std::string result;
  put_double(result, least_part, *least);
  put_double(result, most_part, *most);
  put_double(result, count_part, static_cast<double>(values.size()));
  put_double(result, sum_part, sum);
  put_double(result, squares_part, squares);
  put_doubles(result, limits_part, limits);
  put_doubles(result, counts_part, counts);
  return result;
}

std::string event_of(double wall_time) {
  std::string result;
  put_double(result, wall_time_field, wall_time);
  return result;
}

bool read_summary_value(std::string_view message, read_event& to) {
  std::string tag;
  std::optional<double> scalar;
  bool histogram = false;
  auto ok = each_field(message, [&](const proto_field& x) {
    if (x.number == tag_field && x.type == counted) tag = std::string{x.bytes};
    if (x.number == simple_field && x.type == four_bytes) scalar = get_little<float>(x.bytes);
    histogram |= x.number == histogram_field && x.type == counted;
    return true;
  });
  if (scalar) to.scalars.emplace_back(tag, *scalar);
  if (histogram) to.histograms.push_back(tag);
  return ok;
}

std::optional<read_event> decode_event(std::string_view message) {
  read_event result;
  auto ok = each_field(message, [&](const proto_field& x) {
    if (x.number == step_field && x.type == varint) result.step = static_cast<int64_t>(x.integer);
    if (x.number != summary_field || x.type != counted) return true;
    return each_field(x.bytes, [&](const proto_field& value) {
      return value.number != value_of_summary || value.type != counted ||
             read_summary_value(value.bytes, result);
    });
  });
  return ok ? std::optional{std::move(result)} : std::nullopt;
}

} // namespace

uint32_t crc32c(std::string_view bytes) noexcept {
  uint32_t x = ~uint32_t{0};
  for (unsigned char c : bytes) x = crc_table[(x ^ c) & 0xff] ^ (x >> 8);
  return ~x;
}

uint32_t masked_crc32c(std::string_view bytes) noexcept {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string event_record(std::string_view data) {
  std::string result;
  result.reserve(head_bytes + data.size() + tail_bytes);
  put_little(result, static_cast<uint64_t>(data.size()));
  put_little(result, masked_crc32c(result));
  result += data;
  put_little(result, masked_crc32c(data));
  return result;
}

std::string first_event(double wall_time) {
  auto x = event_of(wall_time);
  put_bytes(x, version_field, "brain.Event:2");
  return x;
}

std::string encode_event(const event_values& x) {
  std::string summary;
  auto add = [&](const std::string& tag, auto put) {
    std::string value;
    put_bytes(value, tag_field, tag);
    put(value);
    put_bytes(summary, value_of_summary, value);
  };
  for (const auto& [tag, number] : x.scalars)
    if (std::isfinite(number))
      add(tag, [number = number](std::string& to) {
        put_key(to, simple_field, four_bytes);
        put_little(to, static_cast<float>(number));
      });
  for (const auto& [tag, values] : x.histograms) {
    std::vector<double> finite;
    for (auto value : values)
      if (std::isfinite(value)) finite.push_back(value);
    if (!finite.empty())
      add(tag, [&](std::string& to) { put_bytes(to, histogram_field, encode_histogram(finite)); });
  }
  auto result = event_of(x.wall_time);
  put_key(result, step_field, varint);
  put_varint(result, static_cast<uint64_t>(x.step));
  put_bytes(result, summary_field, summary);
  return result;
}

event_prefix read_events(std::string_view file) {
  event_prefix result;
  for (auto left = file; left.size() >= head_bytes + tail_bytes;) {
    auto size = get_little<uint64_t>(left);
    if (get_little<uint32_t>(left.substr(8)) != masked_crc32c(left.substr(0, 8))) break;
    if (size > left.size() - head_bytes - tail_bytes) break;
    auto data = left.substr(head_bytes, size);
    if (get_little<uint32_t>(left.substr(head_bytes + size)) != masked_crc32c(data)) break;
    auto event = decode_event(data);
    if (!event) break;
    left.remove_prefix(head_bytes + size + tail_bytes);
    result.bytes = file.size() - left.size();
    result.events.push_back(std::move(*event));
    result.ends.push_back(result.bytes);
  }
  return result;
}

} // namespace kernelmill
