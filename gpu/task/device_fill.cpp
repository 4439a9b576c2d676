#include "gpu/task/device_fill.hpp"

#include <algorithm>
#include <iterator>

namespace kernelmill {

namespace {

struct known_fill {
  const char* name;
  dtype type;
  device_fill how;
};

constexpr known_fill known[] = {
    {"normal", dtype::f32, {0, 1.0f}},
    {"large", dtype::f32, {0, 1e3f}},
    {"tiny", dtype::f32, {0, 1e-20f}},
    {"uniform", dtype::f32, {1, 1.0f}},
    {"positive", dtype::f32, {2, 1.0f}},
    {"signs", dtype::f32, {3, 1.0f}},
    {"zeros", dtype::f32, {4, 1.0f}},
    {"outlier", dtype::f32, {5, 1.0f}},
    {"sparse", dtype::f32, {6, 1.0f}},
    {"constant_rows", dtype::f32, {7, 1.0f}},
    {"sorted", dtype::f32, {8, 1.0f}},
    {"descending", dtype::f32, {9, 1.0f}},
    {"few_negatives", dtype::f32, {10, 1.0f}},
    {"few_outliers", dtype::f32, {11, 1.0f}},
    {"unequal_rows", dtype::f32, {12, 1.0f}},
    {"wide", dtype::f32, {13, 1.0f}},
    {"near_one", dtype::f32, {14, 1.0f}},
    {"index", dtype::i32, {0, 1.0f}}, // the ranges of integers say the rest
    {"constant", dtype::i32, {1, 1.0f}},
    {"skewed", dtype::i32, {2, 1.0f}},
    {"sorted", dtype::i32, {3, 1.0f}},
    {"zeros", dtype::i32, {4, 1.0f}},
};

} // namespace

std::optional<device_fill> find_device_fill(std::string_view distribution, dtype type) noexcept {
  const auto* found = std::find_if(std::begin(known), std::end(known), [&](const known_fill& x) {
    return x.name == distribution && x.type == type;
  });
  if (found == std::end(known)) return std::nullopt;
  return found->how;
}

std::vector<std::string> device_distributions(dtype type) {
  std::vector<std::string> result;
  for (const auto& x : known)
    if (x.type == type) result.emplace_back(x.name);
  return result;
}

} // namespace kernelmill
