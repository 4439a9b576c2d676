#include "gpu/profiler/metrics.hpp"

#include <cmath>
#include <limits>

namespace kernelmill {

namespace {

using m = metric;

// ncu gives times in nanoseconds, shares in percent and the rest in units when it is asked for base
// units (--print-units base).
constexpr std::array<metric_row, metric_count> rows{{
    {m::time, "time", "us", {"gpu__time_duration.sum"}, 1e-3, true, true,
     "of the kernel on the GPU, or of all kernels of a call"},
    {m::call_time, "call_time", "us", {}, 1, true, false,
     "of a call back to back, its launches included"},
    {m::launches, "launches", "", {}, 1, true, false, "kernels that one call launches"},
    {m::roofline_memory, "roofline_memory", "%", {}, 1, true, false,
     "of the memory bandwidth, by the bytes that the task must move"},
    {m::roofline_compute, "roofline_compute", "%", {}, 1, true, false,
     "of the arithmetic peak, by the operations that the task needs"},
    {m::block_threads, "block_threads", "", {"launch__block_size"}, 1, true, true,
     "threads of a block"},
    {m::grid_blocks, "grid_blocks", "", {"launch__grid_size"}, 1, true, true, "blocks of the grid"},
    {m::waves, "waves", "", {"launch__waves_per_multiprocessor"}, 1, true, true,
     "how often the grid fills the GPU"},
    {m::registers, "registers", "", {"launch__registers_per_thread"}, 1, true, true, "a thread"},
    {m::static_shared, "static_shared", "bytes", {"launch__shared_mem_per_block_static"}, 1, true,
     true, "shared memory that a block declares"},
    {m::dynamic_shared, "dynamic_shared", "bytes", {"launch__shared_mem_per_block_dynamic"}, 1,
     true, true, "shared memory that a launch adds to a block's"},
    {m::spill_bytes, "spill_bytes", "bytes", {}, 1, true, false,
     "stored and loaded by a thread because registers ran out, by ptxas"},
    {m::theoretical_occupancy, "theoretical_occupancy", "%",
     {"sm__maximum_warps_per_active_cycle_pct"}, 1, true, true,
     "warps that can live at once, of those that a multiprocessor holds"},
    {m::achieved_occupancy, "achieved_occupancy", "%",
     {"sm__warps_active.avg.pct_of_peak_sustained_active"}, 1, false, true,
     "warps that did live at once"},
    {m::compute_throughput, "compute_throughput", "%",
     {"sm__throughput.avg.pct_of_peak_sustained_elapsed"}, 1, false, true,
     "of the busiest unit of the multiprocessors"},
    {m::memory_throughput, "memory_throughput", "%",
     {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"}, 1, false, true,
     "of the busiest part of the memory system, caches included"},
    {m::dram_throughput, "dram_throughput", "%",
     {"dram__throughput.avg.pct_of_peak_sustained_elapsed",
      "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
     1, false, true, "of the device memory's bandwidth"},
    {m::dram_bytes, "dram_bytes", "bytes", {"dram__bytes.sum"}, 1, false, false,
     "moved to and from device memory"},
    {m::issue_active, "issue_active", "%",
     {"smsp__issue_active.avg.pct_of_peak_sustained_active"}, 1, false, false,
     "cycles in which a scheduler issued an instruction"},
    {m::instructions, "instructions", "", {"smsp__inst_executed.sum"}, 1, false, false,
     "executed, counted by warp"},
    {m::active_threads, "active_threads", "", {"smsp__thread_inst_executed_per_inst_executed.ratio"},
     1, false, false, "threads of a warp that take part in an instruction, of 32"},
    {m::load_bytes_per_sector, "load_bytes_per_sector", "bytes",
     {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"}, 1, false, false,
     "used of each 32-byte sector that global loads fetch"},
    {m::store_bytes_per_sector, "store_bytes_per_sector", "bytes",
     {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"}, 1, false, false,
     "used of each 32-byte sector that global stores write"},
    {m::load_sectors, "load_sectors", "", {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"}, 1,
     false, false, "of 32 bytes, that global loads ask for"},
    {m::load_requests, "load_requests", "", {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"}, 1,
     false, false, "of global loads, one a warp and instruction"},
    {m::shared_wavefronts, "shared_wavefronts", "", {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
     1, false, false, "passes that accesses to shared memory take"},
    {m::bank_conflicts, "bank_conflicts", "", {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
     1, false, false, "passes of those that bank conflicts add"},
    {m::local_loads, "local_loads", "",
     {"smsp__inst_executed_op_local_ld.sum", "smsp__sass_inst_executed_op_local_ld.sum"}, 1, false,
     false, "instructions that load from local memory, counted by warp"},
    {m::local_stores, "local_stores", "",
     {"smsp__inst_executed_op_local_st.sum", "smsp__sass_inst_executed_op_local_st.sum"}, 1, false,
     false, "the same of stores"},
    {m::global_atomics, "global_atomics", "",
     {"smsp__sass_inst_executed_op_global_atom.sum", "smsp__inst_executed_op_global_atom.sum"}, 1,
     false, false, "atomic instructions on global memory that return a value, counted by warp"},
    {m::global_reductions, "global_reductions", "",
     {"smsp__inst_executed_op_global_red.sum", "smsp__sass_inst_executed_op_global_red.sum"}, 1,
     false, false, "atomic instructions on global memory that return none, counted by warp"},
    {m::shared_atomics, "shared_atomics", "",
     {"smsp__inst_executed_op_shared_atom.sum", "smsp__sass_inst_executed_op_shared_atom.sum"}, 1,
     false, false, "atomic instructions on shared memory, counted by warp"},
    {m::fp64_pipe, "fp64_pipe", "%",
     {"sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
      "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"},
     1, false, false, "of the units for double precision"},
    {m::fma_pipe, "fma_pipe", "%",
     {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
      "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"},
     1, false, false, "of the units for multiply-adds"},
    {m::tensor_pipe, "tensor_pipe", "%",
     {"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
      "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active"},
     1, false, false, "of the tensor cores"},
    {m::stall_long_scoreboard, "stall_long_scoreboard", "",
     {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"}, 1, false, false,
     "warps that wait for global or local memory, for each instruction issued"},
    {m::stall_short_scoreboard, "stall_short_scoreboard", "",
     {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"}, 1, false, false,
     "warps that wait for shared memory or special functions, for each instruction issued"},
    {m::stall_barrier, "stall_barrier", "",
     {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"}, 1, false, false,
     "warps that wait at a barrier, for each instruction issued"},
    {m::stall_lg_throttle, "stall_lg_throttle", "",
     {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio"}, 1, false, false,
     "warps that wait for the queue of global and local accesses, for each instruction issued"},
}};

constexpr bool is_in_order() {
  for (size_t i = 0; i < rows.size(); ++i)
    if (static_cast<size_t>(rows[i].id) != i) return false;
  return true;
}
static_assert(is_in_order());

} // namespace

std::span<const metric_row, metric_count> metric_table() {
  return rows;
}

metric_values::metric_values() {
  values_.fill(std::numeric_limits<double>::quiet_NaN());
}

std::optional<double> metric_values::operator[](metric x) const {
  double value = values_[static_cast<size_t>(x)];
  return std::isnan(value) ? std::nullopt : std::optional{value};
}

void metric_values::set(metric x, double value) {
  if (std::isfinite(value)) values_[static_cast<size_t>(x)] = value;
}

bool metric_values::empty() const {
  for (double x : values_)
    if (!std::isnan(x)) return false;
  return true;
}

} // namespace kernelmill
