#include "gpu/profiler/tier0.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "gpu/profiler/metrics.hpp"
#include "gpu/profiler/occupancy.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "gpu/profiler/spill_remark.hpp"
#include "gpu/task/launch_plan.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

using m = metric;

double counter_of(wire::EvaluateResult::Reader x, std::string_view name) {
  for (auto counter : x.getCounters())
    if (counter.getName() == kj::StringPtr{name.data(), name.size()} && counter.getValue() > 0)
      return counter.getValue();
  return 0;
}

double value_of(const expression& x, const scalar_values& scalars) {
  auto result = x.evaluate(scalars);
  return result ? static_cast<double>(*result) : 0;
}

double product_of(const std::array<expression, 3>& sides, const scalar_values& scalars) {
  double result = 1;
  for (const auto& x : sides) result *= value_of(x, scalars);
  return result;
}

// The name of a kernel without what it takes: "sums" of "sums(const float *)".
std::string_view plain_name(std::string_view x) {
  return x.substr(0, x.find('('));
}

std::string line_of(std::string_view source, uint32_t number) {
  std::string_view line;
  for (uint32_t i = 0; i < number && !source.empty(); ++i) line = next_line(source);
  return number > 0 ? std::string{trimmed(line)} : std::string{};
}

// Of all kernels at once: a message may be read a few times alone.
std::map<std::string, std::vector<finding_line>> spills_of(std::string_view source,
                                                           wire::BuildResult::Reader built) {
  std::map<std::string, std::vector<finding_line>> result;
  for (auto x : built.getDiagnostics()) {
    if (x.getSeverity() != spill_remark_severity) continue;
    if (auto found = read_spill_remark(x.getMessage().cStr()))
      result[found->kernel].push_back(
          {x.getLine(), found->instructions, "local memory", line_of(source, x.getLine())});
  }
  return result;
}

std::vector<kernel_metrics> built_kernels(std::string_view source,
                                          wire::BuildResult::Reader built) {
  auto spills = spills_of(source, built);
  std::vector<kernel_metrics> result;
  for (auto x : built.getKernels()) {
    auto& one = result.emplace_back();
    one.kernel = x.getName().cStr();
    one.values.set(m::registers, x.getRegisters());
    one.values.set(m::static_shared, x.getSharedBytes());
    one.values.set(m::spill_bytes, x.getSpillStores() + x.getSpillLoads());
    // By registers alone, until a launch says more.
    one.spills = spills[one.kernel];
    if (x.getOccupancy() > 0) one.values.set(m::theoretical_occupancy, 100 * x.getOccupancy());
  }
  return result;
}

void add_launch(kernel_metrics& to, const launch_line& launch, const scalar_values& scalars,
                const std::optional<multiprocessor_limits>& limits, double multiprocessors) {
  double threads = product_of(launch.block, scalars), blocks = product_of(launch.grid, scalars);
  if (threads < 1 || threads > 1024 || blocks < 1) return;
  double dynamic = value_of(launch.shared, scalars);
  to.values.set(m::block_threads, threads);
  to.values.set(m::grid_blocks, blocks);
  to.values.set(m::dynamic_shared, dynamic);
  auto registers = to.values[m::registers];
  if (!limits || !registers || dynamic < 0 || dynamic > 1e6) return;
  auto shared = to.values[m::static_shared].value_or(0) + dynamic;
  auto found =
      occupancy_of(*limits, {static_cast<uint32_t>(threads), static_cast<uint32_t>(*registers),
                             static_cast<uint32_t>(shared)});
  to.values.set(m::theoretical_occupancy, 100 * found.share);
  if (multiprocessors > 0 && found.blocks > 0)
    to.values.set(m::waves, blocks / (multiprocessors * found.blocks));
}

// Of the contract `device` alone: elsewhere a host function decides what is launched.
size_t add_launches(std::vector<kernel_metrics>& kernels, const task& what, std::string_view source,
                    const std::string& architecture, double multiprocessors) {
  auto plan = parse_launch_plan(std::string{source});
  if (!plan) return 0;
  auto limits = limits_of(architecture);
  for (const auto& launch : plan->launches)
    for (auto& x : kernels)
      if (plain_name(x.kernel) == launch.kernel)
        add_launch(x, launch, what.timed.scalars, limits, multiprocessors);
  return plan->launches.size();
}

// What the referee timed of the whole call, in its own clock.
metric_values call_values(const task& what, wire::EvaluateResult::Reader evaluated) {
  metric_values result;
  auto timing = evaluated.getTiming();
  if (!timing.getMeasured()) return result;
  double device = timing.getCandidateDeviceMs() * 1e3, call = timing.getCandidateCallMs() * 1e3;
  if (device > 0) result.set(m::time, device);
  if (call > 0) result.set(m::call_time, call);
  double seconds = (device > 0 ? device : timing.getCandidateMs() * 1e3) / 1e6;
  auto add_share = [&](metric which, const expression& needed, const char* peak) {
    double most = counter_of(evaluated, peak), amount = value_of(needed, what.timed.scalars);
    if (most > 0 && amount > 0 && seconds > 0)
      result.set(which, std::min(100.0, 100 * amount / seconds / most));
  };
  if (what.contract != contract_kind::torch && what.contract != contract_kind::program) {
    add_share(m::roofline_memory, what.bytes, "machine_memory_bandwidth");
    add_share(m::roofline_compute, what.flops, "machine_flops");
  }
  return result;
}

std::optional<double> known(double x) {
  return x > 0 ? std::optional{x} : std::nullopt;
}

// Of the whole call, by what the task declares; tasks of the contract torch declare nothing.
roofline_position position_in(const task& what, wire::EvaluateResult::Reader evaluated) {
  roofline_work work;
  if (what.contract != contract_kind::torch && what.contract != contract_kind::program) {
    work.flops = known(value_of(what.flops, what.timed.scalars));
    work.bytes = known(value_of(what.bytes, what.timed.scalars));
  }
  auto timing = evaluated.getTiming();
  double device = timing.getCandidateDeviceMs();
  if (timing.getMeasured())
    work.seconds = known((device > 0 ? device : timing.getCandidateMs()) * 1e-3);
  return position_of(work, {known(counter_of(evaluated, "machine_flops")),
                            known(counter_of(evaluated, "machine_memory_bandwidth"))});
}

} // namespace

std::optional<Message<wire::ProfileResult>> tier0_profile(const task& what, std::string_view source,
                                                          wire::BuildResult::Reader built,
                                                          wire::EvaluateResult::Reader evaluated) {
  if (what.terms.backend == "cpu" || !built.getCompiled()) return std::nullopt;
  auto kernels = built_kernels(source, built);
  auto call = call_values(what, evaluated);
  auto architecture = architecture_in({built.getToolchain().begin(), built.getToolchain().size()});
  if (what.contract == contract_kind::device) {
    auto count = add_launches(kernels, what, source, architecture,
                              counter_of(evaluated, "machine_multiprocessors"));
    if (count > 0) call.set(m::launches, static_cast<double>(count));
  }
  std::vector<std::string> missing{
      "hardware counters of the GPU: this profile rests on the build and the timing alone"};
  return profile_result(call, kernels, missing, 0, position_in(what, evaluated));
}

} // namespace kernelmill
