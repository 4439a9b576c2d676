// What some calls at the timed shape do, counted from outside: times by the outside clock, user
// and system time and context switches from /proc, and the processor's own counters where the
// kernel lets us read them.

#include <cerrno>
#include <cstring>
#include <fstream>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/process/core_use.hpp"
#include "gpu/referee/measured_run.hpp"
#include "gpu/referee/scheduling.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t first_counted_call = 2'000;
constexpr int counted_calls = 20;

struct hardware_event {
  const char* name;
  uint32_t type;
  uint64_t config;
};

constexpr hardware_event events[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

// One event over all threads that there are, and those that they start.
class event_counter {
public:
  event_counter(const hardware_event& event, const std::vector<int>& threads) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = event.type;
    attributes.config = event.config;
    attributes.inherit = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    for (int thread : threads) {
      descriptor file{static_cast<int>(
          ::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC))};
      if (!file)
        problem_ = std::strerror(errno);
      else
        files_.push_back(std::move(file));
    }
  }

  const std::string& problem() const { return problem_; }
  double value() const {
    double sum = 0;
    for (const auto& file : files_) {
      uint64_t count = 0;
      if (::read(file.get(), &count, sizeof count) == sizeof count)
        sum += static_cast<double>(count);
    }
    return sum;
  }

private:
  std::vector<descriptor> files_;
  std::string problem_;
};

struct usage {
  double user = 0;
  double system = 0;
  double voluntary = 0;
  double involuntary = 0;
  double threads = 0;
};

usage read_usage(int pid) {
  auto times = processor_times_of(pid);
  usage result{times.user, times.system};
  for (int thread : threads_of(pid)) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) +
                     "/status"};
    std::string line;
    while (std::getline(in, line)) {
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0)
        result.voluntary += std::atof(line.c_str() + 24);
      if (line.rfind("nonvoluntary_ctxt_switches:", 0) == 0)
        result.involuntary += std::atof(line.c_str() + 27);
    }
    ++result.threads;
  }
  return result;
}

} // namespace

void count_calls(measured_run& run) {
  auto& record = run.record;
  run.parts.pool.settle();
  const auto& timed = run.prepared.spec().timed;
  run.work.select(timed);
  if (auto fault = run.choose_geometry(timed)) {
    record.fault = *fault;
    return;
  }
  auto& process = run.candidate.process();
  std::vector<event_counter> counters;
  usage before;
  std::vector<double> seconds;
  double cpu = 0;
  for (int i = -1; i < counted_calls; ++i) {
    if (run.expired()) break;
    run.work.fill(record.seed, first_counted_call + static_cast<uint64_t>(i + 1));
    if (i == 0) { // the first call warms up: threads that it started are there to be counted
      for (const auto& event : events) counters.emplace_back(event, threads_of(process.pid()));
      before = read_usage(process.pid());
    }
    call_measure measure;
    if (!run.call_candidate(true, measure)) {
      record.correct = false;
      return;
    }
    if (i < 0) continue;
    seconds.push_back(measure.seconds);
    cpu += measure.cpu_seconds;
  }
  if (seconds.empty()) return;
  auto after = read_usage(process.pid());
  double calls = static_cast<double>(seconds.size());
  auto add = [&](const char* name, double value, const char* unit) {
    record.counters.push_back({name, value, unit});
  };
  add("calls", calls, "");
  add("call_time", median(seconds) * 1e6, "us");
  add("cpu_time", cpu / calls * 1e6, "us");
  add("user_time", (after.user - before.user) * 1e3, "ms, all calls");
  add("system_time", (after.system - before.system) * 1e3, "ms, all calls");
  add("voluntary_switches", (after.voluntary - before.voluntary) / calls, "per call");
  add("involuntary_switches", (after.involuntary - before.involuntary) / calls, "per call");
  add("threads", after.threads, "");
  const auto& peaks = run.parts.hardware.peaks();
  add("machine_memory_bandwidth", peaks.memory_bytes_per_second, "B/s");
  add("machine_cache_bandwidth", peaks.cache_bytes_per_second, "B/s");
  add("machine_flops", peaks.flops_per_second, "flop/s");
  for (size_t i = 0; i < counters.size(); ++i) {
    if (counters[i].problem().empty())
      add(events[i].name, counters[i].value() / calls, "per call");
    else
      record.missing.push_back(std::string{events[i].name} +
                               ": perf_event_open: " + counters[i].problem());
  }
}

} // namespace kernelmill
