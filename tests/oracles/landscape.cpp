#include "tests/oracles/landscape.hpp"

#include <algorithm>
#include <cmath>

#include "messages/base/hash.hpp"

namespace kernelmill::oracles {

double uniform_of(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double normal_of(uint64_t a, uint64_t b) {
  double sum = -6; // twelve draws: as good as normal
  for (uint64_t i = 0; i < 12; ++i) sum += uniform_of(mix(a, b, i));
  return sum;
}

drawn_landscape::drawn_landscape(uint64_t seed) : seed_(mix(seed, 17)) {
  for (unsigned i = 0; i < options; ++i) {
    alone_[i] = 0.1 + 0.25 * normal_of(seed_, 100 + i);
    for (unsigned k = 0; k < options; ++k)
      together_[i][k] = k < i ? together_[k][i] : 0.3 * normal_of(seed_, 1000 + i * options + k);
  }
  for (uint32_t kernel = 0; kernel < 1u << options; ++kernel)
    optimum_ = std::max(optimum_, doublings(kernel));
}

double drawn_landscape::doublings(uint32_t kernel) const {
  double result = 0;
  for (unsigned i = 0; i < options; ++i) {
    if (!(kernel >> i & 1)) continue;
    result += alone_[i];
    for (unsigned k = 0; k < i; ++k)
      if (kernel >> k & 1) result += together_[i][k];
  }
  return result;
}

search::node drawn_landscape::expand(uint32_t ordinal, const search::node* parent) const {
  auto draw = [&](uint64_t what) { return mix(seed_, ordinal, what); };
  search::node result;
  uint32_t kernel =
      parent && !parent->sha256.empty() ? static_cast<uint32_t>(std::stoul(parent->sha256)) : 0;
  bool fresh = kernel == 0;
  auto changes = 1 + draw(0) % (fresh ? 3 : 2);
  for (uint64_t i = 0; i < changes; ++i) kernel ^= 1u << draw(1 + i) % options;
  result.sha256 = std::to_string(kernel);
  result.state =
      uniform_of(draw(10)) < 0.3 ? search::node_state::failed : search::node_state::verified;
  if (result.state == search::node_state::failed) return result;
  result.estimate = std::exp2(doublings(kernel)) * (1 + 0.02 * normal_of(seed_, draw(20)));
  result.low = result.estimate * 0.97;
  result.high = result.estimate * 1.03;
  result.niche = std::to_string(kernel & 7);
  return result;
}

std::vector<double> search_shares(const landscape& land, const search::strategy_settings& how,
                                  uint32_t turns) {
  search::search_tree nodes;
  std::vector<double> result{0};
  while (nodes.size() + how.width <= turns) {
    auto starts = search::choose(how, nodes);
    for (const auto& x : starts) {
      auto ordinal = static_cast<uint32_t>(nodes.size());
      auto made = land.expand(ordinal, x.parent ? &nodes[*x.parent] : nullptr);
      made.parent = x.parent;
      nodes.push_back(std::move(made));
    }
    auto best = search::best_of(nodes);
    auto kernel = best ? static_cast<uint32_t>(std::stoul(nodes[*best].sha256)) : 0;
    result.push_back(land.doublings(kernel) / land.optimum());
  }
  return result;
}

} // namespace kernelmill::oracles
