#include "gpu/profiler/card_weights.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kernelmill::weigh {

namespace {

using m = metric;

constexpr double near_limit = 60;  // % of a unit's peak: it is what the kernel waits for
constexpr double short_warp = 150; // instructions: a loop over a few tiles has more

template <class... Args>
void say(evidence_list& to, fmt::format_string<Args...> format, Args&&... args) {
  to.push_back(fmt::format(format, std::forward<Args>(args)...));
}

double above(double value, double from, double to) {
  return std::clamp((value - from) / (to - from), 0.0, 1.0);
}

} // namespace

// -- limits of the machine ------------------------------------------------------------------------

double memory(const declared_metrics& x, evidence_list& evidence) {
  auto compute = x[m::compute_throughput].value_or(0);
  if (auto dram = x[m::dram_throughput]; dram && *dram >= near_limit) {
    say(evidence, "device memory at {:.0f} % of its bandwidth, multiprocessors at {:.0f} %", *dram,
        compute);
    return *dram >= compute ? std::min(0.95, *dram / 100) : 0.4;
  }
  if (auto memory = x[m::memory_throughput]; memory && *memory >= near_limit && *memory > compute) {
    say(evidence, "the memory system at {:.0f} % (caches included), multiprocessors at {:.0f} %",
        *memory, compute);
    return std::min(0.9, *memory / 100);
  }
  if (auto share = x[m::roofline_memory]; share && *share >= near_limit) {
    say(evidence, "the task's bytes alone need {:.0f} % of the memory bandwidth", *share);
    return std::min(0.95, *share / 100);
  }
  return 0;
}

double compute(const declared_metrics& x, evidence_list& evidence) {
  auto memory = x[m::memory_throughput].value_or(0);
  if (auto compute = x[m::compute_throughput]; compute && *compute >= near_limit) {
    say(evidence, "multiprocessors at {:.0f} % of their peak, the memory system at {:.0f} %",
        *compute, memory);
    return *compute >= memory ? std::min(0.95, *compute / 100) : 0.4;
  }
  if (auto share = x[m::roofline_compute]; share && *share >= near_limit) {
    say(evidence, "the task's operations alone need {:.0f} % of the arithmetic peak", *share);
    return std::min(0.95, *share / 100);
  }
  return 0;
}

double latency(const declared_metrics& x, evidence_list& evidence) {
  auto compute = x[m::compute_throughput], memory = x[m::memory_throughput];
  if (compute && memory) {
    if (std::max(*compute, *memory) >= near_limit) return 0;
    say(evidence, "no unit is near its limit: multiprocessors at {:.0f} %, memory at {:.0f} %",
        *compute, *memory);
    auto waits = x[m::stall_long_scoreboard];
    if (waits && *waits > 3)
      say(evidence, "{:.1f} warps wait for memory for each instruction issued", *waits);
    if (auto active = x[m::issue_active])
      say(evidence, "schedulers issue in {:.0f} % of their cycles", *active);
    return waits && *waits > 3 ? 0.7 : 0.45;
  }
  auto bytes = x[m::roofline_memory], operations = x[m::roofline_compute];
  if (!bytes && !operations) return 0;
  double share = std::max(bytes.value_or(0), operations.value_or(0));
  if (share >= near_limit) return 0;
  say(evidence, "the task's bytes and operations explain {:.0f} % of the time on the GPU", share);
  return 0.25 + 0.2 * above(near_limit - share, 0, near_limit);
}

// -- how it is launched ---------------------------------------------------------------------------

double occupancy(const declared_metrics& x, evidence_list& evidence) {
  auto theory = x[m::theoretical_occupancy];
  if (!theory) return 0;
  auto describe = [&] {
    if (auto registers = x[m::registers])
      say(evidence, "{:.0f} registers a thread, {:.0f} bytes of shared memory a block", *registers,
          x[m::static_shared].value_or(0) + x[m::dynamic_shared].value_or(0));
  };
  if (*theory <= 25) {
    say(evidence, "at most {:.0f} % of a multiprocessor's warps live at once", *theory);
    describe();
    return 0.5 + 0.3 * above(25 - *theory, 0, 20);
  }
  // A grid that does not fill the GPU leaves it empty too: that is another card.
  auto achieved = x[m::achieved_occupancy], waves = x[m::waves];
  if (!achieved || *theory <= 50 || *achieved >= *theory / 2 || (waves && *waves < 1)) return 0;
  say(evidence, "{:.0f} % of the warps live at once where {:.0f} % could", *achieved, *theory);
  describe();
  return 0.6;
}

double launches(const declared_metrics& x, evidence_list& evidence) {
  auto call = x[m::call_time], time = x[m::time];
  if (!call || !time || *call <= 0) return 0;
  double idle = 1 - *time / *call;
  if (idle < 0.25) return 0;
  say(evidence, "{:.3g} us of a {:.3g} us call are work on the GPU", *time, *call);
  if (auto count = x[m::launches]) say(evidence, "{:.0f} launches a call", *count);
  return 0.5 + 0.45 * above(idle, 0.25, 0.75);
}

double tail(const declared_metrics& x, evidence_list& evidence) {
  auto waves = x[m::waves];
  if (!waves || *waves < 0) return 0; // ncu writes two decimals: a very small grid has 0.00
  auto grid = x[m::grid_blocks];
  if (*waves < 0.5) {
    say(evidence, "the grid fills {:.0f} % of the GPU once", *waves * 100);
    if (grid)
      say(evidence, "{:.0f} blocks of {:.0f} threads", *grid, x[m::block_threads].value_or(0));
    return 0.6 + 0.35 * above(0.5 - *waves, 0, 0.45);
  }
  double whole = std::ceil(*waves);
  double lost = (whole - *waves) / whole;
  if (*waves <= 1 || lost <= 0.15) return 0;
  say(evidence, "{:.2f} waves: {:.0f} % of the GPU's places stay empty while the last blocks run",
      *waves, lost * 100);
  if (grid) say(evidence, "{:.0f} blocks", *grid);
  return 0.6 + 0.2 * above(lost, 0.15, 0.45);
}

// -- how it uses memory ---------------------------------------------------------------------------

double uncoalesced(const declared_metrics& x, evidence_list& evidence) {
  constexpr double wanted = 16; // half of a sector
  double result = 0;
  auto look = [&](metric which, const char* what) {
    auto used = x[which];
    if (!used || *used <= 0 || *used >= wanted) return;
    say(evidence, "{} use {:.1f} of each 32-byte sector", what, *used);
    result = std::max(result, 0.6 + 0.35 * above(wanted - *used, 0, 12));
  };
  look(m::load_bytes_per_sector, "global loads");
  look(m::store_bytes_per_sector, "global stores");
  auto sectors = x[m::load_sectors], requests = x[m::load_requests];
  if (sectors && requests && *requests > 0) {
    double each = *sectors / *requests;
    // Loads of 16 bytes a thread take 16 sectors when they are coalesced.
    if (result > 0 || (each > 16.5 && !x[m::load_bytes_per_sector]))
      say(evidence, "{:.1f} sectors for each load of a warp; 4 serve 32 floats in a row", each);
    if (each > 16.5 && !x[m::load_bytes_per_sector]) result = std::max(result, 0.7);
  }
  // Loads that use all of their sectors and are nearly all of the traffic leave stores no share.
  auto used = x[m::load_bytes_per_sector], traffic = x[m::dram_bytes];
  if (result > 0 && used && *used >= wanted && sectors && traffic &&
      *sectors * 32 >= 0.9 * *traffic)
    return 0.2;
  // Too few accesses to matter: what the GPU does is something else.
  auto count = x[m::instructions];
  if (result > 0 && requests && count && *count > 0 && *requests / *count < 0.005) return 0.2;
  return result;
}

double bank_conflicts(const declared_metrics& x, evidence_list& evidence) {
  auto conflicts = x[m::bank_conflicts], passes = x[m::shared_wavefronts];
  if (!conflicts || !passes || *passes <= 0) return 0;
  double share = *conflicts / *passes;
  if (share < 0.4) return 0;
  auto count = x[m::instructions];
  if (count && *count > 0 && *passes / *count < 0.02) return 0; // hardly any shared memory
  say(evidence, "{:.0f} of {:.0f} passes over shared memory are bank conflicts ({:.0f} %)",
      *conflicts, *passes, share * 100);
  if (auto waits = x[m::stall_short_scoreboard])
    say(evidence, "{:.1f} warps wait for shared memory for each instruction issued", *waits);
  return 0.6 + 0.35 * above(share, 0.4, 0.9);
}

double spills(const declared_metrics& x, evidence_list& evidence) {
  double result = 0;
  if (auto bytes = x[m::spill_bytes]; bytes && *bytes > 0) {
    say(evidence, "{:.0f} bytes a thread are spilled at {:.0f} registers", *bytes,
        x[m::registers].value_or(0));
    result = 0.6 + 0.25 * above(*bytes, 8, 256);
  }
  double accesses = x[m::local_loads].value_or(0) + x[m::local_stores].value_or(0);
  if (accesses <= 0) return result;
  auto count = x[m::instructions];
  double share = count && *count > 0 ? accesses / *count : 0;
  say(evidence, "{:.0f} accesses to local memory, {:.1f} % of the instructions", accesses,
      share * 100);
  return std::max(result, share > 0.02 ? 0.6 + 0.35 * above(share, 0.02, 0.2) : 0.3);
}

double atomics(const declared_metrics& x, evidence_list& evidence) {
  double global = x[m::global_atomics].value_or(0) + x[m::global_reductions].value_or(0);
  double atomics = global + x[m::shared_atomics].value_or(0);
  auto count = x[m::instructions];
  if (atomics <= 0 || !count || *count <= 0) return 0;
  double share = atomics / *count;
  if (share < 0.01) return 0;
  say(evidence, "{:.0f} atomic instructions, {:.0f} of them on global memory: {:.1f} % of all",
      atomics, global, share * 100);
  if (auto waits = x[m::stall_lg_throttle])
    say(evidence, "{:.1f} warps wait for the queue to memory for each instruction issued", *waits);
  // Atomics that keep up with memory are not what limits.
  if (x[m::dram_throughput].value_or(0) >= near_limit) return 0.3;
  return 0.5 + 0.4 * above(share, 0.01, 0.06);
}

// -- what it computes with ------------------------------------------------------------------------

double divergence(const declared_metrics& x, evidence_list& evidence) {
  auto active = x[m::active_threads];
  if (!active || *active >= 24) return 0;
  say(evidence, "{:.1f} of 32 threads take part in an instruction", *active);
  return 0.6 + 0.35 * above(24 - *active, 0, 16);
}

double fp64(const declared_metrics& x, evidence_list& evidence) {
  auto share = x[m::fp64_pipe];
  if (!share || *share <= 1) return 0;
  say(evidence, "the units for double precision are busy for {:.0f} % of the time", *share);
  if (auto fma = x[m::fma_pipe]) say(evidence, "those for single precision for {:.0f} %", *fma);
  // Conversions to and from double are slower than its arithmetic: a few percent cost much more.
  return *share < 5 ? 0.35 : 0.65 + 0.3 * above(*share, 5, 60);
}

double tensor(const declared_metrics& x, evidence_list& evidence) {
  auto fma = x[m::fma_pipe], tensor = x[m::tensor_pipe];
  if (!fma || !tensor || *fma < 30 || *tensor >= 1) return 0;
  // Where other instructions fill the schedulers' cycles, multiply-adds are not what it does.
  if (auto issued = x[m::issue_active]; *fma < 50 && (!issued || *fma < *issued / 2)) return 0;
  say(evidence, "multiply-adds keep their units busy for {:.0f} %, tensor cores for {:.1f} %", *fma,
      *tensor);
  // Only products of matrices could use them. Tiles in shared memory that many multiply-adds read
  // are the sign of one; integer arithmetic keeps the same units busy, and has none.
  auto passes = x[m::shared_wavefronts], count = x[m::instructions];
  bool tiled = passes && count && *count > 0 && *passes / *count > 0.05;
  return tiled && x[m::dram_throughput].value_or(0) < near_limit ? 0.7 : 0.35;
}

double overlap(const declared_metrics& x, evidence_list& evidence) {
  auto barrier = x[m::stall_barrier], memory = x[m::stall_long_scoreboard];
  if (!barrier || !memory || *barrier <= 1.5 || *memory <= 1) return 0;
  if (std::max(x[m::compute_throughput].value_or(0), x[m::memory_throughput].value_or(0)) >= 80)
    return 0;
  // Only a loop over tiles could load the next one meanwhile. Short warps have no loop: there other
  // blocks fill the gaps.
  auto count = x[m::instructions], grid = x[m::grid_blocks], threads = x[m::block_threads];
  if (count && grid && threads && *grid > 0 &&
      *count / (*grid * std::ceil(*threads / 32)) < short_warp)
    return 0;
  say(evidence,
      "for each instruction issued {:.1f} warps wait at a barrier and {:.1f} for memory: loads and "
      "arithmetic take turns",
      *barrier, *memory);
  return 0.6 + 0.2 * above(*barrier, 1.5, 5);
}

} // namespace kernelmill::weigh
