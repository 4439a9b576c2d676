#include "actors/profiler/bottleneck.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gpu/profiler/roofline.hpp"

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
  auto time = find(x, "call_time");
  auto bandwidth = find(x, "machine_memory_bandwidth");
  auto peak = find(x, "machine_flops");
  if (!time || *time <= 0) return;
  double seconds = *time / 1e6;
  const char* source = "memory";
  if (bandwidth && bytes / seconds > *bandwidth) { // warm data: the caches are what feeds it
    bandwidth = find(x, "machine_cache_bandwidth");
    source = "cache";
  }
  double memory = bandwidth && *bandwidth > 0 ? bytes / seconds / *bandwidth : 0;
  double compute = peak && *peak > 0 ? flops / seconds / *peak : 0;
  result.evidence.push_back(fmt::format(
      "{:.1f} us a call: {:.2f} GB/s ({:.0f} % of {} bandwidth), {:.2f} GFLOP/s ({:.0f} % of peak)",
      *time, bytes / seconds / 1e9, memory * 100, source, flops / seconds / 1e9, compute * 100));
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
  auto time = find(x, "call_time"), cpu = find(x, "cpu_time"), threads = find(x, "threads");
  auto waits = find(x, "voluntary_switches");
  if (!time || !cpu || *time <= 0) return;
  result.evidence.push_back(fmt::format("{:.1f} us of processor time a call in {:.0f} threads",
                                        *cpu, threads.value_or(1)));
  // The referee's own hand-over costs one wait a call.
  if (waits && *waits > 4) {
    result.evidence.push_back(fmt::format("threads wait {:.1f} times a call", *waits));
    if (result.bottleneck == "latency") {
      result.bottleneck = "launch_overhead";
      result.confidence = 0.6;
      result.next = {
          "threads wait for each other: use fewer, give each more work, avoid barriers in loops"};
    }
  }
}

void weigh_counters(card& result, const counts& x) {
  auto cycles = find(x, "cycles"), instructions = find(x, "instructions");
  if (cycles && instructions && *cycles > 0) {
    double ipc = *instructions / *cycles;
    result.evidence.push_back(fmt::format("{:.2f} instructions per cycle", ipc));
    if (result.bottleneck == "latency" && ipc > 2.5) {
      result.bottleneck = "compute";
      result.next = {"many instructions for little result: vectorise the inner loop"};
    }
  }
  if (auto misses = find(x, "cache_misses"))
    result.evidence.push_back(fmt::format("{:.0f} last-level cache misses a call", *misses));
}

// On a CPU the bandwidth is that of memory; warm data may come faster, from the caches.
roofline_position position_in(const counts& x, double bytes, double flops) {
  auto known = [](double value) { return value > 0 ? std::optional{value} : std::nullopt; };
  roofline_work work{known(flops), known(bytes), std::nullopt};
  if (auto time = find(x, "call_time")) work.seconds = *time * 1e-6;
  return position_of(work, {find(x, "machine_flops"), find(x, "machine_memory_bandwidth")});
}

// What was counted, and the call's place under the roofline behind it.
void put_counters(wire::ProfileResult::Builder out, wire::EvaluateResult::Reader counted,
                  const roofline_position& position) {
  auto from = counted.getCounters();
  auto more = quantities_of(position);
  auto list = out.initCounters(from.size() + static_cast<unsigned>(more.size()));
  for (unsigned i = 0; i < from.size(); ++i) list.setWithCaveats(i, from[i]);
  for (unsigned i = 0; i < more.size(); ++i) {
    auto to = list[from.size() + i];
    to.setName(std::string{more[i].name});
    to.setValue(more[i].value);
    to.setUnit(std::string{more[i].unit});
  }
}

std::string csv_of(wire::EvaluateResult::Reader counted) {
  std::string result = "counter,value,unit\n";
  for (auto x : counted.getCounters())
    result += fmt::format("{},{},{}\n", x.getName().cStr(), x.getValue(), x.getUnit().cStr());
  for (auto x : counted.getMissing()) result += fmt::format("# missing: {}\n", x.cStr());
  return result;
}

template <class List>
void put_texts(List list, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, texts[i]);
}

} // namespace

Message<wire::ProfileResult> read_bottleneck(wire::EvaluateResult::Reader counted, double bytes,
                                             double flops, double seconds, bool reports) {
  counts values;
  for (auto counter : counted.getCounters())
    values.emplace(counter.getName().cStr(), counter.getValue());
  card result;
  weigh_roofline(result, values, bytes, flops);
  weigh_scheduling(result, values);
  weigh_counters(result, values);
  return build<wire::ProfileResult>([&](wire::ProfileResult::Builder x) {
    x.setAvailable(!values.empty());
    put_counters(x, counted,
                 values.empty() ? roofline_position{} : position_in(values, bytes, flops));
    x.setMissing(counted.getMissing());
    auto out = x.initCard();
    out.setBottleneck(result.bottleneck);
    out.setConfidence(result.confidence);
    put_texts(out.initEvidence(static_cast<unsigned>(result.evidence.size())), result.evidence);
    put_texts(out.initNextActions(static_cast<unsigned>(result.next.size())), result.next);
    x.setSeconds(seconds);
    x.setFault(counted.getFault());
    if (!reports) return;
    auto report = x.initReports(1)[0];
    report.setName("counters.csv");
    report.setText(csv_of(counted));
  });
}

} // namespace kernelmill
