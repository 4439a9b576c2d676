#include "gpu/referee/device/contents_plan.hpp"

#include <algorithm>
#include <numeric>

#include "gpu/referee/workload.hpp"
#include "gpu/task/device_fill.hpp"

namespace kernelmill {

namespace {

// Of any input whose contents have both signs and all orders anyway.
constexpr const char* more_kinds[] = {"few_negatives", "few_outliers", "sorted", "sparse",
                                      "unequal_rows"};

std::string name_of(const task& x, const std::vector<std::string>& fills) {
  std::string same;
  std::string all;
  bool differ = false;
  for (size_t i = 0; i < fills.size(); ++i) {
    if (fills[i].empty()) continue;
    differ = differ || (!same.empty() && fills[i] != same);
    same = fills[i];
    all += (all.empty() ? "" : " ") + x.arguments[i].name + "=" + fills[i];
  }
  return differ ? all : same;
}

bool can_make(const task& x, const std::vector<std::string>& fills) {
  for (size_t i = 0; i < fills.size(); ++i)
    if (!fills[i].empty() && !find_device_fill(fills[i], x.arguments[i].type)) return false;
  return true;
}

// The largest, because what is left unread there saves most.
size_t largest_normal(const task& x, const std::vector<std::string>& own) {
  size_t result = own.size();
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] == "normal" &&
        (result == own.size() || tensor_bytes(x, i, x.timed) > tensor_bytes(x, result, x.timed)))
      result = i;
  return result;
}

} // namespace

std::vector<contents_kind> kinds_of_contents(const task& x) {
  std::vector<contents_kind> result;
  auto add = [&](std::vector<std::string> fills) {
    for (const auto& known : result)
      if (known.fills == fills) return;
    if (!can_make(x, fills)) return;
    auto name = name_of(x, fills);
    result.push_back({std::move(name), std::move(fills)});
  };
  std::vector<std::string> own;
  for (const auto& arg : x.arguments)
    own.push_back(is_filled(arg) ? fill_of(arg, x.timed) : std::string{});
  add(own);
  for (const auto& which : x.cases) {
    auto fills = own;
    for (size_t i = 0; i < fills.size(); ++i)
      if (auto it = which.fills.find(x.arguments[i].name); it != which.fills.end())
        fills[i] = it->second;
    add(std::move(fills));
  }
  if (auto which = largest_normal(x, own); which < own.size()) {
    for (const char* name : more_kinds) {
      auto fills = own;
      fills[which] = name;
      add(std::move(fills));
    }
  }
  return result;
}

contents_plan::contents_plan(size_t kinds, const std::function<uint64_t()>& draw) {
  if (kinds < 2) return;
  others_.resize(kinds - 1);
  std::iota(others_.begin(), others_.end(), size_t{1});
  for (size_t i = others_.size(); i > 1; --i) std::swap(others_[i - 1], others_[draw() % i]);
  others_.resize(std::min(others_.size(), most_others));
}

size_t contents_plan::kind_of(size_t pair) const {
  return pair % 2 == 0 || others_.empty() ? 0 : others_[pair / 2 % others_.size()];
}

} // namespace kernelmill
