#include <map>

#include <gmock/gmock.h>

#include "actors/profiler/bottleneck.hpp"

namespace kernelmill {
namespace bottleneck_test {

std::string bottleneck_of(const std::map<std::string, double>& counters, double bytes,
                          double flops) {
  auto counted = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    auto list = x.initCounters(static_cast<unsigned>(counters.size()));
    unsigned i = 0;
    for (auto& [name, value] : counters) {
      list[i].setName(name);
      list[i++].setValue(value);
    }
  });
  auto card = read_bottleneck(*counted.open(), bytes, flops, 0.1);
  return card.open()->getCard().getBottleneck().cStr();
}

const std::map<std::string, double> machine = {{"machine_memory_bandwidth", 10e9},
                                               {"machine_cache_bandwidth", 100e9},
                                               {"machine_flops", 100e9},
                                               {"cpu_time", 100},
                                               {"threads", 1}};

std::map<std::string, double> with(std::map<std::string, double> more) {
  more.insert(machine.begin(), machine.end());
  return more;
}

TEST(Bottleneck, NearMemoryBandwidthIsBandwidth) {
  EXPECT_EQ(bottleneck_of(with({{"call_time", 100}}), 900e3, 1e3), "memory_bandwidth");
}

TEST(Bottleneck, DataThatComesFasterThanMemoryIsMeasuredAgainstTheCaches) {
  EXPECT_EQ(bottleneck_of(with({{"call_time", 100}}), 2e6, 1e3), "latency");
  EXPECT_EQ(bottleneck_of(with({{"call_time", 100}}), 9e6, 1e3), "memory_bandwidth");
}

TEST(Bottleneck, NearPeakArithmeticIsCompute) {
  EXPECT_EQ(bottleneck_of(with({{"call_time", 100}}), 1e3, 8e6), "compute");
}

TEST(Bottleneck, NeitherIsLatency) {
  EXPECT_EQ(bottleneck_of(with({{"call_time", 100}}), 1e3, 1e3), "latency");
}

TEST(Bottleneck, WaitingThreadsAreOverhead) {
  EXPECT_EQ(bottleneck_of(with({{"call_time", 100}, {"voluntary_switches", 20}}), 1e3, 1e3),
            "launch_overhead");
}

TEST(Bottleneck, WithoutCountsNothingIsClaimed) {
  EXPECT_EQ(bottleneck_of({}, 1e6, 1e6), "unknown");
}

TEST(Bottleneck, IsAReportTooWhereOneIsAskedFor) {
  auto counted = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    auto counter = x.initCounters(1)[0];
    counter.setName("cycles");
    counter.setValue(1200);
    counter.setUnit("1");
    x.initMissing(1).set(0, "cache_misses: no permission");
  });
  auto without = read_bottleneck(*counted.open(), 1, 1, 0.1);
  EXPECT_EQ(without.open()->getReports().size(), 0u);
  auto with_report = read_bottleneck(*counted.open(), 1, 1, 0.1, true);
  auto reports = with_report.open();
  ASSERT_EQ(reports->getReports().size(), 1u);
  EXPECT_STREQ(reports->getReports()[0].getName().cStr(), "counters.csv");
  EXPECT_STREQ(reports->getReports()[0].getText().cStr(),
               "counter,value,unit\ncycles,1200,1\n# missing: cache_misses: no permission\n");
}

} // namespace bottleneck_test
} // namespace kernelmill
