#include "gpu/referee/device/kind_looks.hpp"

namespace kernelmill {

std::optional<std::vector<size_t>>
kind_looks::slow_kinds(double usual,
                       const std::function<double(size_t, const row_times&)>& seconds_a_call,
                       const std::function<std::optional<looked_row>(size_t)>& again) const {
  std::vector<size_t> result;
  for (const auto& x : seen_) {
    auto is_slow = [&](const looked_row& row) {
      return !row || seconds_a_call(x.kind, *row) > slow * usual;
    };
    if (!is_slow(x.row)) continue;
    auto second = again(x.kind); // somebody else may have had the GPU
    if (!second) return std::nullopt;
    if (is_slow(*second)) result.push_back(x.kind);
  }
  return result;
}

} // namespace kernelmill
