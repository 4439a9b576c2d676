// How far strategies of a search come with an equal budget, on landscapes with a known optimum.
//
//   search_bench [turns] [seeds] [table]
//
// Without a table: another landscape of drawn optimisations for each seed (drawn_landscape), and
// the share of the optimum's doublings that the best kernel has. With a table of
// measure_variants.py: real kernels, each seed another policy, and the share of the optimum's
// speed. Every figure is a mean over the seeds with its 95 % interval (bootstrap).

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "actors/search/strategy.hpp"
#include "messages/base/hash.hpp"
#include "tests/oracles/landscape.hpp"
#include "tests/oracles/measured_landscape.hpp"

using namespace kernelmill;
using namespace kernelmill::search;

namespace {

constexpr uint32_t width = 8;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (auto x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

std::string interval_text(const std::vector<double>& values) {
  constexpr uint64_t draws = 4000;
  std::vector<double> means;
  for (uint64_t i = 0; i < draws; ++i) {
    auto again = values;
    for (size_t k = 0; k < again.size(); ++k) again[k] = values[mix(i, k) % values.size()];
    means.push_back(mean_of(again));
  }
  std::sort(means.begin(), means.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f [%.2f, %.2f]", mean_of(values), means[draws / 40],
                means[draws - 1 - draws / 40]);
  return text;
}

/// Draws all kernels of a table alike. As search_shares.
std::vector<double> shares_at_random(const oracles::measured_landscape& land, uint32_t turns) {
  search_tree nodes;
  std::vector<double> result{0};
  while (nodes.size() + width <= turns) {
    for (uint32_t i = 0; i < width; ++i)
      nodes.push_back(land.any(static_cast<uint32_t>(nodes.size())));
    auto best = best_of(nodes);
    auto kernel = best ? static_cast<uint32_t>(std::stoul(nodes[*best].sha256)) : 0;
    result.push_back(land.doublings(kernel) / land.optimum());
  }
  return result;
}

/// A row: after an eighth, a quarter, half and all of the turns.
void print_row(const char* name, const std::vector<std::vector<double>>& reached) {
  std::printf("%-10s", name);
  auto generations = reached.front().size() - 1;
  for (auto part : {8, 4, 2, 1}) {
    std::vector<double> values;
    for (const auto& x : reached) values.push_back(x[generations / static_cast<size_t>(part)]);
    std::printf("  %-18s", interval_text(values).c_str());
  }
  auto hits =
      std::count_if(reached.begin(), reached.end(), [](const auto& x) { return x.back() > 0.999; });
  std::printf("  %ld/%zu\n", static_cast<long>(hits), reached.size());
}

} // namespace

int main(int argc, char** argv) {
  auto turns = std::max(width, static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 200));
  auto seeds = std::max(1u, static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 20));
  std::optional<oracles::measured_landscape> real;
  if (argc > 3) {
    std::ifstream table{argv[3]};
    real = oracles::measured_landscape::read(table);
    if (!real) {
      std::fprintf(stderr, "search_bench: %s is no table of measure_variants.py\n", argv[3]);
      return 3;
    }
  }
  auto shown = [&](std::vector<double> shares) { // of speed rather than of doublings
    if (real)
      for (auto& x : shares) x = std::exp2((x - 1) * real->optimum());
    return shares;
  };
  std::printf("%u turns, %u seeds: share of the optimum's %s that the best kernel has\n\n%-10s",
              turns, seeds, real ? "speed" : "doublings", "strategy");
  auto generations = turns / width;
  for (auto part : {8u, 4u, 2u, 1u})
    std::printf("  %-18s", ("after " + std::to_string(generations / part * width)).c_str());
  std::printf("  optimum found\n");
  for (auto kind : {strategy_kind::best_of_n, strategy_kind::random, strategy_kind::beam,
                    strategy_kind::islands, strategy_kind::tree}) {
    std::vector<std::vector<double>> reached;
    for (uint32_t seed = 0; seed < seeds; ++seed) {
      strategy_settings how;
      how.kind = kind;
      how.seed = seed;
      how.width = width;
      if (real) {
        real->seed(mix(seed, 17));
        reached.push_back(shown(oracles::search_shares(*real, how, turns)));
      } else {
        reached.push_back(oracles::search_shares(oracles::drawn_landscape{seed}, how, turns));
      }
    }
    print_row(to_string(kind), reached);
  }
  if (!real) return 0;
  std::vector<std::vector<double>> reached;
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    real->seed(mix(seed, 17));
    reached.push_back(shown(shares_at_random(*real, turns)));
  }
  print_row("any kernel", reached);
  std::printf("\n%zu kernels; the fastest is %.2f times as fast as the plain one\n", real->size(),
              std::exp2(real->optimum()));
}
