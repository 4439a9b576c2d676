#include "retrieval/search/byte_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kernelmill {

namespace {

constexpr float least_scaled = 1e-30F; // below, the inverse of the scale would be infinite
constexpr double upward = 1 + 1e-6;    // so that rounding a bound to a float cannot lower it

// -- one loop for each kind of machine --------------------------------------------------------
// One row after the other: four at once, which would share what is read of the query, run at half
// the speed, since memory is fastest when it is read in one stream. The package runs on any x86-64,
// so the machine is asked when the program runs, not when it is compiled.

void scan_plain(const uint8_t* rows, size_t count, size_t stride, const int8_t* query,
                int32_t* products) {
  for (size_t row = 0; row < count; ++row, rows += stride) {
    int32_t sum = 0;
    for (size_t i = 0; i < stride; ++i) sum += int32_t{rows[i]} * int32_t{query[i]};
    products[row] = sum;
  }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) inline int32_t sum_of(__m256i x) {
  auto half = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return _mm_cvtsi128_si32(half);
}

// Of 16 bits each: the instruction that multiplies bytes cuts its sums to 16 bits.
__attribute__((target("avx2"))) inline __m256i products_of(const uint8_t* row,
                                                           const int8_t* query) {
  auto x = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
  auto y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(query)));
  return _mm256_madd_epi16(x, y);
}

__attribute__((target("avx2"))) void scan_avx2(const uint8_t* rows, size_t count, size_t stride,
                                               const int8_t* query, int32_t* products) {
  for (size_t row = 0; row < count; ++row, rows += stride) {
    auto a = _mm256_setzero_si256(), b = a;
    for (size_t i = 0; i < stride; i += 32) {
      a = _mm256_add_epi32(a, products_of(rows + i, query + i));
      b = _mm256_add_epi32(b, products_of(rows + i + 16, query + i + 16));
    }
    products[row] = sum_of(_mm256_add_epi32(a, b));
  }
}

#define KERNELMILL_VNNI "avx512f,avx512bw,avx512vnni"

__attribute__((target(KERNELMILL_VNNI))) void scan_vnni(const uint8_t* rows, size_t count,
                                                        size_t stride, const int8_t* query,
                                                        int32_t* products) {
  for (size_t row = 0; row < count; ++row, rows += stride) {
    auto a = _mm512_setzero_si512(), b = a;
    for (size_t i = 0; i < stride; i += 128) {
      a = _mm512_dpbusd_epi32(a, _mm512_loadu_si512(rows + i), _mm512_loadu_si512(query + i));
      b = _mm512_dpbusd_epi32(b, _mm512_loadu_si512(rows + i + 64),
                              _mm512_loadu_si512(query + i + 64));
    }
    a = _mm512_add_epi32(a, b);
    // With a mask, since GCC takes the other form for one that reads what was never set.
    products[row] = sum_of(_mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xF, a, 0),
                                            _mm512_maskz_extracti64x4_epi64(0xF, a, 1)));
  }
}

#undef KERNELMILL_VNNI

#endif

std::vector<named_byte_scan> runnable_scans() {
  std::vector<named_byte_scan> result;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vnni"))
    result.push_back({"avx512-vnni", scan_vnni});
  if (__builtin_cpu_supports("avx2")) result.push_back({"avx2", scan_avx2});
#endif
  result.push_back({"plain", scan_plain});
  return result;
}

} // namespace

bool can_round(const float* row, size_t dimension) {
  double sum = 0;
  for (size_t i = 0; i < dimension; ++i) sum += double{row[i]} * row[i];
  return sum < 1e36; // false for what is no number, too
}

// A Walsh-Hadamard transform of blocks, after signs that follow no pattern: without them a row of
// equal numbers, say, would end on one.
void turn_row(const float* row, size_t dimension, float* to) {
  auto stride = byte_row_stride(dimension);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i < dimension; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    to[i] = (state >> 33 & 1) != 0 ? -row[i] : row[i];
  }
  std::fill(to + dimension, to + stride, 0.0F);
  auto block = stride & (~stride + 1); // the greatest power of two that divides it
  for (size_t half = 1; half < block; half *= 2)
    for (size_t begin = 0; begin < stride; begin += 2 * half)
      for (size_t i = begin; i < begin + half; ++i) {
        float a = to[i], b = to[i + half];
        to[i] = a + b;
        to[i + half] = a - b;
      }
  auto scale = 1 / std::sqrt(static_cast<float>(block));
  for (size_t i = 0; i < stride; ++i) to[i] *= scale;
}

byte_row round_row(const float* row, size_t dimension, int8_t* codes) {
  float most = 0;
  for (size_t i = 0; i < dimension; ++i) most = std::max(most, std::fabs(row[i]));
  byte_row result;
  result.scale = most > least_scaled ? most / 127 : 0;
  float inverse = most > least_scaled ? 127 / most : 0;
  double error = 0, norm = 0, kept = 0;
  for (size_t i = 0; i < dimension; ++i) {
    float x = row[i] * inverse;
    int code = std::clamp(static_cast<int>(x + (x < 0 ? -0.5F : 0.5F)), -127, 127);
    codes[i] = static_cast<int8_t>(code);
    double back = double{result.scale} * code, lost = row[i] - back;
    error += lost * lost;
    norm += double{row[i]} * row[i];
    kept += back * back;
  }
  std::memset(codes + dimension, 0, byte_row_stride(dimension) - dimension);
  result.error = static_cast<float>(std::sqrt(error) * upward);
  result.norm = static_cast<float>(std::sqrt(std::max(norm, kept)) * upward);
  return result;
}

byte_row round_row(const float* row, size_t dimension, uint8_t* codes) {
  auto* bytes = reinterpret_cast<int8_t*>(codes);
  auto result = round_row(row, dimension, bytes);
  for (size_t i = 0; i < byte_row_stride(dimension); ++i)
    codes[i] = static_cast<uint8_t>(bytes[i] + 128);
  return result;
}

const std::vector<named_byte_scan>& byte_scans() {
  static const auto result = runnable_scans();
  return result;
}

float inner_product(const float* x, const float* y, size_t dimension) {
  float sums[16] = {};
  size_t i = 0;
  for (; i + 16 <= dimension; i += 16)
    for (size_t j = 0; j < 16; ++j) sums[j] += x[i + j] * y[i + j];
  for (size_t j = 0; i < dimension; ++i, ++j) sums[j] += x[i] * y[i];
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}

} // namespace kernelmill
