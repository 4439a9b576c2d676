#include "tests/oracles/measured_landscape.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <istream>
#include <numeric>
#include <sstream>

#include "messages/base/hash.hpp"

namespace kernelmill::oracles {

namespace {

constexpr double broken = 0.2; // of the answers
constexpr uint64_t most_fresh = 3, most_changed = 2;

} // namespace

std::optional<measured_landscape> measured_landscape::read(std::istream& from) {
  measured_landscape result;
  std::string line;
  if (!std::getline(from, line)) return std::nullopt;
  std::istringstream sizes{line};
  for (uint32_t n = 0; sizes >> n;) result.values_.push_back(n);
  auto count = std::accumulate(result.values_.begin(), result.values_.end(), uint64_t{1},
                               std::multiplies<>{});
  if (result.values_.empty() || count < 2 || count > 1'000'000) return std::nullopt;
  result.kernels_.resize(count);
  while (std::getline(from, line)) {
    std::istringstream row{line};
    uint32_t kernel = 0;
    for (auto n : result.values_) {
      uint32_t value = n;
      if (!(row >> value) || value >= n) return std::nullopt;
      kernel = kernel * n + value;
    }
    auto& x = result.kernels_[kernel];
    if (!(row >> x.niche >> x.estimate >> x.low >> x.high) || !(x.low > 0)) return std::nullopt;
  }
  if (result.kernels_.front().estimate <= 0) return std::nullopt;
  for (uint32_t i = 0; i < count; ++i)
    result.optimum_ = std::max(result.optimum_, result.doublings(i));
  return result;
}

double measured_landscape::doublings(uint32_t kernel) const {
  auto speed = kernels_[kernel].estimate;
  return speed > 0 ? std::log2(speed / kernels_.front().estimate) : 0;
}

search::node measured_landscape::expand(uint32_t ordinal, const search::node* parent) const {
  auto draw = [&](uint64_t what) { return mix(seed_, ordinal, what); };
  uint32_t kernel =
      parent && !parent->sha256.empty() ? static_cast<uint32_t>(std::stoul(parent->sha256)) : 0;
  auto changes = 1 + draw(0) % (kernel == 0 ? most_fresh : most_changed);
  std::vector<uint32_t> values(values_.size());
  for (size_t i = values_.size(); i-- > 0; kernel /= values_[i]) values[i] = kernel % values_[i];
  std::vector<size_t> order(values_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return draw(100 + a) < draw(100 + b); });
  for (uint64_t i = 0; i < changes && i < order.size(); ++i) {
    auto n = values_[order[i]];
    values[order[i]] = static_cast<uint32_t>((values[order[i]] + 1 + draw(1 + i) % (n - 1)) % n);
  }
  kernel = 0;
  for (size_t i = 0; i < values.size(); ++i) kernel = kernel * values_[i] + values[i];
  return answered(kernel, ordinal);
}

search::node measured_landscape::any(uint32_t ordinal) const {
  return answered(static_cast<uint32_t>(mix(seed_, ordinal, 1) % kernels_.size()), ordinal);
}

search::node measured_landscape::answered(uint32_t kernel, uint32_t ordinal) const {
  const auto& x = kernels_[kernel];
  search::node result;
  result.sha256 = std::to_string(kernel);
  result.niche = x.niche;
  bool wrong = uniform_of(mix(seed_, ordinal, 10)) < broken;
  result.state = wrong ? search::node_state::failed : search::node_state::verified;
  if (wrong || x.estimate <= 0) return result;
  auto deviation = std::log(x.high / x.low) / 2 / 1.96;
  auto luck = std::exp(deviation * normal_of(seed_, mix(ordinal, 20)));
  result.estimate = x.estimate * luck;
  result.low = x.low * luck;
  result.high = x.high * luck;
  return result;
}

} // namespace kernelmill::oracles
