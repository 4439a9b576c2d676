#include "actors/profiler/bottleneck.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace kernelmill {

namespace {

using counts = std::map<std::string, double, std::less<>>;

struct card {
  std::string bottleneck = "unknown";
  double confidence = 0;
  std::vector<std::string> evidence;
  std::vector<std::string> next;
};

std::optional<double> find(const counts& x, std::string_view name) {
  auto i = x.find(name);
  return i == x.end() ? std::nullopt : std::optional{i->second};
}

// Compares what a call moved and computed with what the machine can do, as the referee measured it.
void weigh_roofline(card& result, const counts& x, double bytes, double flops) {
  auto time = find(x, "call_ms");
  auto bandwidth = find(x, "stream_bandwidth");
  auto peak = find(x, "peak_flops");
  if (!time || *time <= 0) return;
  double seconds = *time / 1e3;
  double memory = bandwidth && *bandwidth > 0 ? bytes / seconds / *bandwidth : 0;
  double compute = peak && *peak > 0 ? flops / seconds / *peak : 0;
  result.evidence.push_back(fmt::format(
      "{:.4f} ms a call: {:.2f} GB/s ({:.0f} % of stream bandwidth), {:.2f} GFLOP/s ({:.0f} % of peak)",
      *time, bytes / seconds / 1e9, memory * 100, flops / seconds / 1e9, compute * 100));
  if (memory >= 0.6 && memory >= compute) {
    result.bottleneck = "memory_bandwidth";
    result.confidence = std::min(0.95, memory);
    result.next = {"move fewer bytes: fuse passes over the data, keep partial results in registers",
                   "more arithmetic tuning will not help at this bandwidth"};
  } else if (compute >= 0.6) {
    result.bottleneck = "compute";
    result.confidence = std::min(0.95, compute);
    result.next = {"reduce operations, or use fused multiply-add and wider vectors"};
  } else {
    result.bottleneck = "latency";
    result.confidence = 0.5 + 0.4 * (0.6 - std::max(memory, compute));
    result.next = {"break dependency chains: several independent accumulators, unrolled loops",
                   "walk memory in order; check that the inner loop vectorises"};
  }
}

void weigh_scheduling(card& result, const counts& x) {
  auto user = find(x, "user_ms_per_call"), system = find(x, "system_ms_per_call");
  auto time = find(x, "call_ms");
  auto switches = find(x, "context_switches_per_call");
  if (time && user && system && *time > 0) {
    result.evidence.push_back(fmt::format("{:.4f} ms user and {:.4f} ms system time a call", *user, *system));
    if (*system > 0.3 * (*user + *system) && *system > 0.02) {
      result.bottleneck = "launch_overhead";
      result.confidence = 0.7;
      result.next = {"the kernel spends its time in the operating system: allocate once, start fewer threads"};
    }
  }
  if (switches) {
    result.evidence.push_back(fmt::format("{:.1f} context switches a call", *switches));
    if (*switches > 8 && result.bottleneck == "latency") {
      result.bottleneck = "launch_overhead";
      result.confidence = 0.6;
      result.next = {"threads wait for each other: use fewer, give each more work, avoid barriers in loops"};
    }
  }
}

void weigh_counters(card& result, const counts& x) {
  auto cycles = find(x, "cycles_per_call"), instructions = find(x, "instructions_per_call");
  if (cycles && instructions && *cycles > 0) {
    double ipc = *instructions / *cycles;
    result.evidence.push_back(fmt::format("{:.2f} instructions per cycle", ipc));
    if (result.bottleneck == "latency" && ipc > 2.5) {
      result.bottleneck = "compute";
      result.next = {"many instructions for little result: vectorise the inner loop"};
    }
  }
  if (auto misses = find(x, "cache_misses_per_call"))
    result.evidence.push_back(fmt::format("{:.0f} last-level cache misses a call", *misses));
}

template <class List>
void put_texts(List list, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, texts[i]);
}

} // namespace

Message<wire::ProfileResult> read_bottleneck(wire::EvaluateResult::Reader counted, double bytes,
                                             double flops, double seconds) {
  counts values;
  std::vector<std::string> missing;
  for (auto counter : counted.getCounters()) {
    if (counter.getUnit() == "missing")
      missing.emplace_back(counter.getName().cStr());
    else
      values.emplace(counter.getName().cStr(), counter.getValue());
  }
  card result;
  weigh_roofline(result, values, bytes, flops);
  weigh_scheduling(result, values);
  weigh_counters(result, values);
  return build<wire::ProfileResult>([&](wire::ProfileResult::Builder x) {
    x.setAvailable(!values.empty());
    x.setCounters(counted.getCounters());
    put_texts(x.initMissing(static_cast<unsigned>(missing.size())), missing);
    auto out = x.initCard();
    out.setBottleneck(result.bottleneck);
    out.setConfidence(result.confidence);
    put_texts(out.initEvidence(static_cast<unsigned>(result.evidence.size())), result.evidence);
    put_texts(out.initNextActions(static_cast<unsigned>(result.next.size())), result.next);
    x.setSeconds(seconds);
    x.setFault(counted.getFault());
  });
}

} // namespace kernelmill
