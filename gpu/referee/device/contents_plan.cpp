#include "gpu/referee/device/contents_plan.hpp"

#include <algorithm>
#include <numeric>

#include "gpu/referee/workload.hpp"
#include "gpu/task/device_fill.hpp"
#include "gpu/task/timed_kinds.hpp"

namespace kernelmill {

std::vector<contents_kind> kinds_of_contents(const task& x) {
  std::vector<contents_kind> result;
  for (const auto& timed : timed_kinds(x, x.timed)) {
    contents_kind kind{timed.name, {}};
    bool can_make = true;
    for (const auto& arg : x.arguments) {
      kind.fills.push_back(is_filled(arg) ? fill_of(arg, timed) : std::string{});
      can_make = can_make && (kind.fills.back().empty() ||
                              find_device_fill(kind.fills.back(), arg.type).has_value());
    }
    if (can_make) result.push_back(std::move(kind));
  }
  return result;
}

content_how content_of(const task& x, size_t argument, const contents_kind& kind) {
  const auto& arg = x.arguments[argument];
  // Only kinds that a GPU can make are there; the loader takes no task without its own.
  auto fill = find_device_fill(kind.fills[argument], arg.type).value_or(device_fill{});
  content_how how{fill.kind, fill.scale, 1, 0, 1};
  const auto& scalars = x.timed.scalars;
  if (!arg.shape.empty())
    how.row = static_cast<uint32_t>(arg.shape.back().evaluate(scalars).value_or(1));
  if (arg.type == dtype::i32 && arg.fill_range.size() == 2) {
    auto low = arg.fill_range[0].evaluate(scalars).value_or(0);
    auto high = arg.fill_range[1].evaluate(scalars).value_or(1);
    how.low = static_cast<int32_t>(low);
    how.width = static_cast<uint64_t>(high - low);
  }
  return how;
}

contents_plan::contents_plan(size_t kinds, const std::function<uint64_t()>& draw, size_t unfit) {
  others_.resize(std::max<size_t>(kinds, 1) - 1);
  std::iota(others_.begin(), others_.end(), size_t{1});
  for (size_t i = others_.size(); i > 1; --i) std::swap(others_[i - 1], others_[draw() % i]);
  auto timed = std::min(others_.size(), most_others);
  rest_.assign(others_.begin() + static_cast<std::ptrdiff_t>(timed), others_.end());
  others_.resize(timed);
  for (size_t i = 0; i < unfit; ++i) {
    rest_.push_back(kinds + i);
    std::swap(rest_.back(), rest_[draw() % rest_.size()]);
  }
}

std::vector<size_t> contents_plan::checked_before(size_t pair) const {
  std::vector<size_t> result;
  if (pair >= round()) return result;
  for (size_t i = pair; i < rest_.size(); i += round()) result.push_back(rest_[i]);
  return result;
}

size_t contents_plan::kind_of(size_t pair) const {
  return pair % 2 == 0 || others_.empty() ? 0 : others_[pair / 2 % others_.size()];
}

} // namespace kernelmill
