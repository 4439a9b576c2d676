#include "gpu/profiler/cards.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/ncu_command.hpp"

using namespace kernelmill;
using testing::Contains;
using testing::HasSubstr;

namespace cards_test {

using m = metric;
using values = std::map<metric, double>;

// A kernel that nothing is wrong with: it streams through device memory.
const values clean = {{m::time, 100},
                      {m::waves, 12},
                      {m::grid_blocks, 12672},
                      {m::block_threads, 256},
                      {m::registers, 32},
                      {m::theoretical_occupancy, 100},
                      {m::achieved_occupancy, 88},
                      {m::compute_throughput, 25},
                      {m::memory_throughput, 91},
                      {m::dram_throughput, 91},
                      {m::issue_active, 20},
                      {m::instructions, 1e6},
                      {m::active_threads, 32},
                      {m::load_bytes_per_sector, 32},
                      {m::store_bytes_per_sector, 32},
                      {m::load_sectors, 4e5},
                      {m::load_requests, 1e5},
                      {m::shared_wavefronts, 0},
                      {m::bank_conflicts, 0},
                      {m::local_loads, 0},
                      {m::local_stores, 0},
                      {m::global_atomics, 0},
                      {m::global_reductions, 0},
                      {m::shared_atomics, 0},
                      {m::fp64_pipe, 0},
                      {m::fma_pipe, 10},
                      {m::tensor_pipe, 0},
                      {m::stall_long_scoreboard, 14},
                      {m::stall_short_scoreboard, 0.2},
                      {m::stall_barrier, 0},
                      {m::stall_lg_throttle, 0.1}};

metric_values made(const values& changes) {
  metric_values result;
  for (auto [which, value] : clean) result.set(which, value);
  for (auto [which, value] : changes) result.set(which, value);
  return result;
}

std::string first(const values& changes) {
  auto cards = read_cards(made(changes));
  return cards.empty() ? "nothing" : std::string{cards[0].kind};
}

const values slow = {
    {m::dram_throughput, 20}, {m::memory_throughput, 30}, {m::compute_throughput, 20}};

values with(values x, const values& more) {
  x.insert(more.begin(), more.end());
  return x;
}

TEST(Cards, ACleanStreamIsLimitedByMemoryAndHasNoFlaw) {
  auto cards = read_cards(made({}));
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0].kind, "memory_bandwidth");
  EXPECT_GT(cards[0].confidence, 0.9);
  EXPECT_THAT(cards[0].evidence[0], HasSubstr("91 %"));
}

TEST(Cards, EachFlawIsTheFirstCardOfAKernelThatHasIt) {
  EXPECT_EQ(
      first({{m::compute_throughput, 92}, {m::memory_throughput, 30}, {m::dram_throughput, 10}}),
      "compute");
  EXPECT_EQ(first(slow), "latency");
  EXPECT_EQ(first(with(slow, {{m::theoretical_occupancy, 6}})), "occupancy");
  EXPECT_EQ(first(with(slow, {{m::achieved_occupancy, 20}})), "occupancy");
  EXPECT_EQ(first(with(slow, {{m::call_time, 400}, {m::launches, 8}})), "launch_overhead");
  EXPECT_EQ(first(with(slow, {{m::waves, 0.01}})), "tail");
  EXPECT_EQ(first(with(slow, {{m::waves, 0}})), "tail") << "0.00 of a report is a small grid";
  EXPECT_EQ(first(with(slow, {{m::waves, 1.1}})), "tail");
  EXPECT_EQ(first({{m::load_bytes_per_sector, 4}}), "uncoalesced_access");
  EXPECT_EQ(first({{m::store_bytes_per_sector, 4}}), "uncoalesced_access");
  EXPECT_EQ(first(with(slow, {{m::shared_wavefronts, 3.2e6}, {m::bank_conflicts, 3.1e6}})),
            "bank_conflicts");
  EXPECT_EQ(first(with(slow, {{m::active_threads, 3}})), "divergence");
  EXPECT_EQ(first(with(slow, {{m::global_reductions, 1e5}})), "atomics");
  EXPECT_EQ(first(with(slow, {{m::local_loads, 1e5}, {m::local_stores, 1e5}})), "register_spills");
  EXPECT_EQ(first(with(slow, {{m::spill_bytes, 128}})), "register_spills");
  EXPECT_EQ(first({{m::fp64_pipe, 85}}), "fp64");
  const values product = {{m::fma_pipe, 75},
                          {m::compute_throughput, 80},
                          {m::dram_throughput, 10},
                          {m::memory_throughput, 40}};
  EXPECT_EQ(first(product), "compute") << "it may be integer arithmetic";
  EXPECT_EQ(first(with(product, {{m::shared_wavefronts, 2e5}})), "no_tensor_cores");
  EXPECT_EQ(first(with(slow, {{m::stall_barrier, 4}, {m::instructions, 1e8}})), "no_overlap");
}

// As in a transpose through shared memory: one tile a block, and other blocks fill the gaps.
TEST(Cards, WarpsThatAreOverAfterOneTileHaveNothingToOverlap) {
  const values tile = {{m::stall_barrier, 20},      {m::stall_long_scoreboard, 50},
                       {m::grid_blocks, 65536},     {m::block_threads, 256},
                       {m::compute_throughput, 25}, {m::memory_throughput, 50},
                       {m::dram_throughput, 50}};
  EXPECT_EQ(first(with(tile, {{m::instructions, 65536.0 * 8 * 50}})), "latency");
  EXPECT_EQ(first(with(tile, {{m::instructions, 65536.0 * 8 * 2000}})), "no_overlap");
}

// As in a sum of rows: one result of four bytes for each row.
TEST(Cards, StoresThatAreNoTrafficAreNotCalledUncoalesced) {
  const values sums = {{m::load_bytes_per_sector, 32}, {m::store_bytes_per_sector, 4},
                       {m::load_sectors, 8e6},         {m::load_requests, 5e5},
                       {m::dram_throughput, 88},       {m::instructions, 8e6}};
  EXPECT_EQ(first(with(sums, {{m::dram_bytes, 8e6 * 32}})), "memory_bandwidth");
  EXPECT_EQ(first(with(sums, {{m::dram_bytes, 8e6 * 64}})), "uncoalesced_access");
}

TEST(Cards, WideLoadsAreNotCalledUncoalesced) {
  // 16 bytes a thread: 16 sectors a request, all of them used.
  EXPECT_EQ(first({{m::load_sectors, 16e5}, {m::load_requests, 1e5}}), "memory_bandwidth");
}

TEST(Cards, AFewStrayAccessesAreNoFlaw) {
  auto cards = read_cards(made({{m::load_bytes_per_sector, 4}, {m::load_requests, 1e3}}));
  EXPECT_EQ(cards[0].kind, "memory_bandwidth");
}

TEST(Cards, WithoutNumbersNothingIsClaimed) {
  EXPECT_TRUE(read_cards({}).empty());
}

TEST(Cards, EachCardHasEvidenceTwoCausesAndOneThingToTry) {
  auto cards = read_cards(made({{m::theoretical_occupancy, 6},
                                {m::active_threads, 3},
                                {m::spill_bytes, 64},
                                {m::fp64_pipe, 50},
                                {m::waves, 0.1}}));
  EXPECT_GE(cards.size(), 5u);
  for (const auto& x : cards) {
    EXPECT_FALSE(x.evidence.empty()) << x.kind;
    EXPECT_FALSE(x.causes[0].empty() || x.causes[1].empty()) << x.kind;
    EXPECT_FALSE(x.action.empty()) << x.kind;
    EXPECT_GT(x.confidence, 0) << x.kind;
    EXPECT_LE(x.confidence, 0.95) << x.kind;
  }
}

// A rule whose metric is not collected always answers "no", without a sign of the fault.
TEST(Cards, EachMetricThatARuleReadsIsCollected) {
  auto full = ncu_metrics(metric_pack::full);
  for (const auto& rule : bottleneck_rules())
    for (auto which : rule.reads) {
      const auto& row = row_of(which);
      bool asked = std::find(full.begin(), full.end(), row.ncu[0]) != full.end();
      EXPECT_TRUE(row.is_of_tier0 || (asked && !row.ncu[0].empty()))
          << rule.kind << " reads " << row.name;
    }
}

TEST(Cards, ARuleSeesWhatItDeclaresAndNothingElse) {
  const std::vector<metric> declared{m::waves};
  auto known = made({});
  declared_metrics x{known, declared};
  EXPECT_TRUE(x[m::waves]);
  EXPECT_FALSE(x[m::registers]);
}

TEST(Cards, AndMetricsAreInTheReference) {
  std::ifstream in{KERNELMILL_TREE "/docs/reference/profiles.md"};
  std::string page{std::istreambuf_iterator<char>{in}, {}};
  for (const auto& row : metric_table())
    EXPECT_THAT(page, HasSubstr("| `" + std::string{row.name} + "` | " + std::string{row.unit}));
  for (const auto& rule : bottleneck_rules()) {
    EXPECT_THAT(page, HasSubstr("| `" + std::string{rule.kind} + "` | "));
    EXPECT_THAT(page, HasSubstr(std::string{rule.action} + " |"));
  }
}

TEST(Cards, RulesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const auto& rule : bottleneck_rules()) EXPECT_TRUE(names.insert(rule.kind).second);
  EXPECT_EQ(names.size(), 14u);
}

TEST(Cards, TheCostliestKernelIsTheOneThatTakesTheMostTime) {
  std::vector<kernel_metrics> kernels(3);
  kernels[0].values.set(m::time, 3);
  kernels[1].values.set(m::time, 30);
  EXPECT_EQ(costliest(kernels), &kernels[1]);
  EXPECT_EQ(costliest({}), nullptr);
}

} // namespace cards_test
