#include "gpu/task/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <sys/random.h>

#include "gpu/task/random_words.hpp"
#include "gpu/task/vectorized.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {

namespace {

// -- random words -----------------------------------------------------------------------------

struct lane_keys {
  uint32_t k[8];
};

lane_keys lanes(const content_key& key) {
  lane_keys result{};
  for (int i = 0; i < 4; ++i) {
    result.k[2 * i] = static_cast<uint32_t>(key.words[i]);
    result.k[2 * i + 1] = static_cast<uint32_t>(key.words[i] >> 32);
  }
  return result;
}

__extension__ using wide_product = unsigned __int128;

// For the few draws that decide places and orders.
class sequence {
public:
  explicit sequence(const content_key& key)
      : state_{key.words[0], key.words[1], key.words[2], key.words[3]} {
    for (int i = 0; i < 4; ++i) next(); // xoshiro needs a moment to leave a poor state
  }

  uint64_t next() { // xoshiro256++
    auto rotate = [](uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
    uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Below n, by multiplication; the bias of n / 2^64 is nothing here.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<wide_product>(next()) * n) >> 64);
  }

private:
  uint64_t state_[4];
};

// -- f32 --------------------------------------------------------------------------------------

// Three uniforms of 24 bits sum to a bell of deviation 1/2; cut at three deviations, which no
// kernel can tell from a normal one.
KERNELMILL_VECTORIZED void fill_normal(float* x, size_t n, lane_keys key, float scale) {
  for (size_t i = 0; i < n; ++i) {
    auto c = static_cast<uint32_t>(i);
    float sum = unit(mix(c, key.k[0], key.k[1])) + unit(mix(c, key.k[2], key.k[3])) +
                unit(mix(c, key.k[4], key.k[5]));
    x[i] = (sum - 1.5f) * 2.0f * scale;
  }
}

KERNELMILL_VECTORIZED void fill_uniform(float* x, size_t n, lane_keys key, float low, float width) {
  for (size_t i = 0; i < n; ++i)
    x[i] = low + width * unit(mix(static_cast<uint32_t>(i), key.k[0], key.k[1]));
}

KERNELMILL_VECTORIZED void fill_signs(float* x, size_t n, lane_keys key) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t word = mix(static_cast<uint32_t>(i), key.k[0], key.k[1]);
    float noise = (unit(word) - 0.5f) * 2e-3f;
    x[i] = ((word & 1u) != 0 ? 1.0f : -1.0f) + noise;
  }
}

float bell(sequence& draw) {
  float sum = 0;
  for (int i = 0; i < 3; ++i) sum += unit(static_cast<uint32_t>(draw.next() >> 32));
  return (sum - 1.5f) * 2.0f;
}

void fill_sparse(std::span<float> x, size_t row, sequence& draw) {
  std::fill(x.begin(), x.end(), 0.0f);
  for (size_t start = 0; start < x.size(); start += row) {
    // The low bit is set, so that no shorter mantissa holds the value.
    auto bits = static_cast<uint32_t>(0x3f800000u | (draw.next() >> 41) | 1u);
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    x[start + draw.below(row)] = (draw.next() & 1) != 0 ? value : -value;
  }
}

void add_outliers(std::span<float> x, sequence& draw) {
  for (size_t i = 0; i <= x.size() / 256; ++i) x[draw.below(x.size())] = bell(draw) * 1e4f;
}

// One to three of all: no sample of the elements finds them.
void add_few_outliers(std::span<float> x, sequence& draw) {
  for (uint64_t n = 1 + draw.below(3); n > 0; --n) {
    float size = 100.0f + 900.0f * unit(static_cast<uint32_t>(draw.next() >> 32));
    x[draw.below(x.size())] = (draw.next() & 1) != 0 ? size : -size;
  }
}

// A few turn their sign: as rare as outliers are.
void turn_few(std::span<float> x, sequence& draw) {
  for (uint64_t n = 1 + draw.below(3); n > 0; --n) {
    auto& value = x[draw.below(x.size())];
    value = -value;
  }
}

void shrink_rows(std::span<float> x, size_t row, sequence& draw) {
  for (size_t start = 0; start < x.size(); start += row) {
    float scale = std::ldexp(1.0f, -static_cast<int>(draw.below(13)));
    for (float& value : x.subspan(start, row)) value *= scale;
  }
}

void fill_rows(std::span<float> x, size_t row, sequence& draw) {
  for (size_t start = 0; start < x.size(); start += row)
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(start), row, bell(draw));
}

template <class T>
void sort_rows(std::span<T> x, size_t row, bool descending) {
  for (size_t start = 0; start < x.size(); start += row) {
    auto part = x.subspan(start, row);
    std::sort(part.begin(), part.end());
    if (descending) std::reverse(part.begin(), part.end());
  }
}

template <class T>
void shuffle(std::span<T> x, sequence& draw) {
  for (size_t i = x.size(); i > 1; --i) std::swap(x[i - 1], x[draw.below(i)]);
}

// Slots of width 1/row around zero, each used once; noise stays within the middle half of a slot,
// so neighbours differ by at least half a slot.
void fill_distinct(std::span<float> x, size_t row, sequence& draw) {
  std::vector<uint32_t> order(row);
  for (size_t start = 0; start < x.size(); start += row) {
    std::iota(order.begin(), order.end(), 0u);
    shuffle(std::span{order}, draw);
    for (size_t i = 0; i < row; ++i) {
      double noise = 0.25 + 0.5 * static_cast<double>(draw.next() >> 40) * 0x1p-24;
      x[start + i] = static_cast<float>((order[i] + noise) / static_cast<double>(row) * 2.0 - 1.0);
    }
  }
}

void mask(std::span<float> x, size_t row, sequence& draw) {
  for (size_t start = 0; start < x.size(); start += row) {
    size_t kept = start + draw.below(row);
    for (size_t i = start; i < start + row; ++i)
      if (i != kept && (draw.next() >> 62) == 0) x[i] = -std::numeric_limits<float>::infinity();
  }
}

// -- i32 --------------------------------------------------------------------------------------

KERNELMILL_VECTORIZED void fill_index(int32_t* x, size_t n, lane_keys key, int32_t low,
                                      uint64_t width) {
  for (size_t i = 0; i < n; ++i)
    x[i] = low +
           static_cast<int32_t>((mix(static_cast<uint32_t>(i), key.k[0], key.k[1]) * width) >> 32);
}

void fill_permutation(std::span<int32_t> x, size_t row, sequence& draw) {
  for (size_t start = 0; start < x.size(); start += row) {
    auto part = x.subspan(start, row);
    std::iota(part.begin(), part.end(), 0);
    shuffle(part, draw);
  }
}

} // namespace

secret_seed draw_seed() {
  secret_seed seed{};
  // 32 bytes are given in full once the pool is ready, which it is long before this runs.
  (void)!::getrandom(seed.data(), seed.size(), 0);
  return seed;
}

content_key derive_key(const secret_seed& seed, std::string_view case_name, uint64_t call,
                       std::string_view argument) {
  std::string text(reinterpret_cast<const char*>(seed.data()), seed.size());
  // Lengths before names, so that no two tuples make the same text.
  text += std::to_string(case_name.size()) + ":" + std::string{case_name} + std::to_string(call) +
          ":" + std::string{argument};
  auto digest = sha256(text);
  content_key key{};
  std::memcpy(key.words, digest.data(), sizeof key.words);
  return key;
}

std::vector<std::string> distributions(dtype type) {
  if (type == dtype::i32) return {"constant", "index", "permutation", "skewed", "sorted", "zeros"};
  return {"constant_rows", "descending", "distinct", "few_negatives", "few_outliers",
          "large",         "masked",     "near_one", "normal",        "outlier",
          "positive",      "signs",      "sorted",   "sparse",        "tiny",
          "unequal_rows",  "uniform",    "wide",     "zeros"};
}

bool is_distribution(std::string_view name, dtype type) noexcept {
  auto names = distributions(type);
  return std::find(names.begin(), names.end(), name) != names.end();
}

void fill(std::span<float> x, std::string_view name, size_t row, const content_key& key) {
  auto keys = lanes(key);
  sequence draw{key};
  if (name == "uniform") return fill_uniform(x.data(), x.size(), keys, 0.0f, 1.0f);
  if (name == "positive" || name == "few_negatives")
    fill_uniform(x.data(), x.size(), keys, 0.5f, 1.0f);
  if (name == "few_negatives") return turn_few(x, draw);
  if (name == "positive") return;
  if (name == "near_one") return fill_uniform(x.data(), x.size(), keys, 0.9375f, 0.125f);
  if (name == "wide") return fill_uniform(x.data(), x.size(), keys, -51.0f, 102.0f);
  if (name == "signs") return fill_signs(x.data(), x.size(), keys);
  if (name == "sparse") return fill_sparse(x, row, draw);
  if (name == "constant_rows") return fill_rows(x, row, draw);
  if (name == "distinct") return fill_distinct(x, row, draw);
  if (name == "zeros") return std::fill(x.begin(), x.end(), 0.0f), void();
  float scale = name == "large" ? 1e3f : name == "tiny" ? 1e-20f : 1.0f;
  fill_normal(x.data(), x.size(), keys, scale);
  if (name == "outlier") add_outliers(x, draw);
  if (name == "few_outliers") add_few_outliers(x, draw);
  if (name == "unequal_rows") shrink_rows(x, row, draw);
  if (name == "sorted" || name == "descending") sort_rows(x, row, name == "descending");
  if (name == "masked") mask(x, row, draw);
}

void fill(std::span<int32_t> x, std::string_view name, size_t row, int64_t low, int64_t high,
          const content_key& key) {
  sequence draw{key};
  auto width = static_cast<uint64_t>(high - low);
  auto any = [&] { return static_cast<int32_t>(low + static_cast<int64_t>(draw.below(width))); };
  if (name == "permutation") return fill_permutation(x, row, draw);
  if (name == "zeros") return std::fill(x.begin(), x.end(), 0), void();
  if (name == "constant") return std::fill(x.begin(), x.end(), any()), void();
  fill_index(x.data(), x.size(), lanes(key), static_cast<int32_t>(low), width);
  if (name == "sorted") sort_rows(x, row, false);
  if (name == "skewed") {
    int32_t common = any();
    for (auto& value : x)
      if ((draw.next() >> 62) != 0) value = common;
  }
}

} // namespace kernelmill
