#pragma once

// The contents of inputs. Every (seed, case, call, argument) has its own key, so no two calls see
// the same bytes and nobody without the seed can say what comes next. The values themselves come
// from a counter-based hash, which vectorizes: about 1 ns an element, because fresh inputs are
// made before every timed call.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill {

using secret_seed = std::array<unsigned char, 32>;

/// A seed that nobody knows, from the kernel.
secret_seed draw_seed();

struct content_key {
  uint64_t words[4];
};

/// Derives the key of one tensor of one call.
content_key derive_key(const secret_seed& seed, std::string_view case_name, uint64_t call,
                       std::string_view argument);

/// Whether `name` fills tensors of this type.
bool is_distribution(std::string_view name, dtype type) noexcept;

/// The names for one type, for suggestions.
std::vector<std::string> distributions(dtype type);

/// REQUIRES: is_distribution(name, dtype::f32), row > 0, x.size() a multiple of row.
void fill(std::span<float> x, std::string_view name, size_t row, const content_key& key);

/// Values of "index", "skewed", "constant" and "sorted" lie in [low, high).
/// REQUIRES: is_distribution(name, dtype::i32), low < high, row > 0, x.size() a multiple of row.
void fill(std::span<int32_t> x, std::string_view name, size_t row, int64_t low, int64_t high,
          const content_key& key);

} // namespace kernelmill
