// How far strategies of a search come with an equal budget, on landscapes with a known optimum.
//
// A kernel is a choice of twelve optimisations. Each multiplies the speed, some only together with
// another, some only without one, so that single steps lead to local optima. The policy is a
// stand-in: from the task it turns on up to three of them, from a parent it changes one or two; 3
// answers in 10 fail, and a time is off by 2 %. The optimum is found by trying all 4,096.
//
//   search_bench [turns] [seeds]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "actors/search/strategy.hpp"
#include "tests/oracles/landscape.hpp"

using namespace kernelmill;
using namespace kernelmill::search;

int main(int argc, char** argv) {
  auto turns = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 200);
  auto seeds = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 20);
  std::printf("%u turns, %u seeds: share of the optimum's doublings that the best kernel has\n\n"
              "%-10s %8s %8s %8s %8s\n",
              turns, seeds, "strategy", "mean", "worst", "at half", "optimum");
  for (auto kind : {strategy_kind::best_of_n, strategy_kind::random, strategy_kind::beam,
                    strategy_kind::islands, strategy_kind::tree}) {
    double sum = 0, worst = 1, half = 0;
    unsigned hits = 0;
    for (uint32_t seed = 0; seed < seeds; ++seed) {
      oracles::landscape land{seed};
      strategy_settings how;
      how.kind = kind;
      how.seed = seed;
      auto reached = oracles::search_shares(land, how, turns);
      sum += reached.back();
      half += reached[reached.size() / 2];
      worst = std::min(worst, reached.back());
      hits += reached.back() > 0.999;
    }
    std::printf("%-10s %8.3f %8.3f %8.3f %5u/%u\n", to_string(kind), sum / seeds, worst,
                half / seeds, hits, seeds);
  }
}
