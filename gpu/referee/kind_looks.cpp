#include "gpu/referee/kind_looks.hpp"

namespace kernelmill {

std::optional<std::vector<size_t>>
slow_kinds(const std::vector<kind_look>& seen, double usual,
           const std::function<std::optional<kind_look>(size_t)>& again) {
  auto is_slow = [&](const kind_look& x) { return !x.seconds || *x.seconds > slow_look * usual; };
  std::vector<size_t> result;
  for (const auto& x : seen) {
    if (!is_slow(x)) continue;
    auto second = again(x.kind); // somebody else may have had the cores, or the GPU
    if (!second) return std::nullopt;
    if (is_slow(*second)) result.push_back(x.kind);
  }
  return result;
}

} // namespace kernelmill
