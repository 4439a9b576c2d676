#include "gpu/profiler/trace_report.hpp"

#include "gpu/profiler/occupancy.hpp"

namespace kernelmill {

namespace {

double as_microseconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

double volume(const extent& x) {
  return static_cast<double>(x[0]) * static_cast<double>(x[1]) * static_cast<double>(x[2]);
}

void set_if(metric_values& to, metric which, const std::optional<uint64_t>& x) {
  if (x) to.set(which, static_cast<double>(*x));
}

// A tool's number may be anything: more than a GPU can have is no block.
void set_occupancy(metric_values& to, const launch_shape& x, const trace_gpu& gpu) {
  auto limits = limits_of(gpu.architecture);
  if (!limits || !x.block || !x.registers || !x.shared) return;
  auto threads = volume(*x.block);
  if (threads < 1 || threads > 1024 || *x.registers > 255 || *x.shared > (1 << 20)) return;
  auto fits =
      occupancy_of(*limits, {static_cast<uint32_t>(threads), static_cast<uint32_t>(*x.registers),
                             static_cast<uint32_t>(*x.shared)});
  if (fits.blocks == 0) return;
  to.set(metric::theoretical_occupancy, fits.share * 100);
  if (x.grid && gpu.multiprocessors > 0)
    to.set(metric::waves,
           volume(*x.grid) / (fits.blocks * static_cast<double>(gpu.multiprocessors)));
}

} // namespace

std::string_view to_string(trace_tool x) {
  switch (x) {
    case trace_tool::nsys: return "nsys";
    case trace_tool::rocprofv3: return "rocprofv3";
    case trace_tool::rocpd: return "rocpd";
    case trace_tool::rocm_smi: return "rocm-smi";
  }
  return {};
}

std::string_view to_string(trace_problem x) {
  switch (x) {
    case trace_problem::none: return "none";
    case trace_problem::no_kernels: return "no_kernels";
    case trace_problem::no_gpus: return "no_gpus";
  }
  return {};
}

metric_values values_of(const trace_kernel& x, const trace_gpu& gpu) {
  metric_values result;
  if (x.times) result.set(metric::time, as_microseconds(x.times->median_ns));
  if (x.shape.block) result.set(metric::block_threads, volume(*x.shape.block));
  if (x.shape.grid) result.set(metric::grid_blocks, volume(*x.shape.grid));
  set_if(result, metric::registers, x.shape.registers);
  set_if(result, metric::static_shared, x.shape.static_shared);
  set_if(result, metric::dynamic_shared, x.shape.dynamic_shared);
  set_occupancy(result, x.shape, gpu);
  return result;
}

metric_values values_of(const trace_device& x) {
  metric_values result;
  if (x.launches == 0) return result;
  result.set(metric::time, as_microseconds(x.busy_ns));
  result.set(metric::call_time, as_microseconds(x.busy_ns + x.launch_gap_ns));
  result.set(metric::launches, static_cast<double>(x.launches));
  return result;
}

} // namespace kernelmill
