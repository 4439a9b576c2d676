#pragma once

// Rows of floats as rows of bytes: a quarter of what a scan has to read. Each row has a scale of
// its own, and what rounding to bytes changed is kept as a length, so that an inner product of
// bytes bounds the one of floats from both sides.
//
// With x = x' + e, where x' are the bytes times the scale, and likewise y = y' + f:
//
//   <x, y> = <x', y'> + <e, y> + <x', f>, and so |<x, y> - <x', y'>| <= |e| |y| + |x'| |f|
//
// A row whose weight lies on few numbers, as that of words does, has a large scale, and rounding
// loses much of all others. So rows are turned before: all in one way, which changes no inner
// product, and spreads the weight.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernelmill {

/// Bytes of a row: the dimension, rounded up to two of the widest registers.
constexpr size_t byte_row_stride(size_t dimension) {
  return (dimension + 127) / 128 * 128;
}

/// Products of bytes are summed in 32 bits.
inline constexpr size_t max_byte_row_dimension = 32768;

struct byte_row {
  float scale = 0;
  float error = 0; ///< the length of what rounding changed, or a little more
  float norm = 0;  ///< the length of the row or of its bytes, whichever is more, or a little more
};

/// Says whether `row` can be kept: finite, and no longer than 1e18.
bool can_round(const float* row, size_t dimension);

/// Turns a row. `to` has room for byte_row_stride(dimension).
void turn_row(const float* row, size_t dimension, float* to);

/// How much turning may change an inner product, as a share of the product of the lengths.
inline constexpr float turning_error = 5e-6F;

/// Rounds to -127..127. `codes` has room for byte_row_stride(dimension); the rest becomes 0.
/// REQUIRES: can_round(row, dimension).
byte_row round_row(const float* row, size_t dimension, int8_t* codes);

/// The same plus 128, as scans read rows.
byte_row round_row(const float* row, size_t dimension, uint8_t* codes);

/// Writes to `products` the inner product of each of `count` rows, as they lie (128 too high), with
/// `query`. Every way of doing it gives the same numbers.
using byte_scan = void (*)(const uint8_t* rows, size_t count, size_t stride, const int8_t* query,
                           int32_t* products);

struct named_byte_scan {
  const char* name;
  byte_scan scan;
};

/// What this machine can run, best first.
const std::vector<named_byte_scan>& byte_scans();

/// The inner product of floats, summed in one order on every machine of a kind.
float inner_product(const float* x, const float* y, size_t dimension);

/// How much inner_product may be off, as a share of the product of the lengths.
constexpr float inner_product_error(size_t dimension) {
  return 1.2e-7F * (static_cast<float>(dimension) / 16 + 64);
}

} // namespace kernelmill
