#include "gpu/profiler/cards.hpp"

#include <algorithm>

#include "gpu/profiler/card_weights.hpp"

namespace kernelmill {

namespace {

using m = metric;

constexpr double sure_flaw = 0.6; // confidence from which a flaw goes before a limit

std::vector<bottleneck_rule> make_rules() {
  return {
      {"memory_bandwidth",
       false,
       {m::dram_throughput, m::memory_throughput, m::compute_throughput, m::roofline_memory},
       {"the data is read or written more often than needed",
        "the kernel moves what it must, and is near the end"},
       "move fewer bytes: fuse passes over the data, keep partial results in registers",
       weigh::memory},
      {"compute",
       false,
       {m::compute_throughput, m::memory_throughput, m::roofline_compute},
       {"more instructions than the task needs: index arithmetic, conversions, special functions",
        "the arithmetic itself, without the units made for it"},
       "take work out of the inner loop, or use tensor cores where the task is a matrix product",
       weigh::compute},
      {"latency",
       false,
       {m::compute_throughput, m::memory_throughput, m::stall_long_scoreboard, m::issue_active,
        m::roofline_memory, m::roofline_compute},
       {"each thread waits for one load before it asks for the next",
        "too few warps or too little independent work to hide the waits"},
       "have several loads in flight: unroll, load 16 bytes a thread, prefetch the next tile",
       weigh::latency},
      {"occupancy",
       true,
       {m::theoretical_occupancy, m::achieved_occupancy, m::registers, m::static_shared,
        m::dynamic_shared, m::waves},
       {"registers or shared memory of a block leave no room for more blocks",
        "blocks of one grid differ much in length"},
       "give each block less: __launch_bounds__, a smaller tile, fewer values kept in registers",
       weigh::occupancy},
      {"launch_overhead",
       true,
       {m::call_time, m::time, m::launches},
       {"several short kernels where one would do",
        "the work of a call is too small to hide a launch"},
       "fuse the kernels of a call into one",
       weigh::launches},
      {"tail",
       true,
       {m::waves, m::grid_blocks, m::block_threads},
       {"fewer blocks than the GPU has places for", "the last wave is nearly empty"},
       "choose the grid to be a multiple of what fits the GPU: smaller tiles, or split the "
       "reduction",
       weigh::tail},
      {"uncoalesced_access",
       true,
       {m::load_bytes_per_sector, m::store_bytes_per_sector, m::load_sectors, m::load_requests,
        m::instructions, m::dram_bytes},
       {"neighbouring threads access addresses that lie far apart",
        "a structure's fields are read one by one"},
       "let threadIdx.x run along the contiguous dimension, or transpose through shared memory",
       weigh::uncoalesced},
      {"bank_conflicts",
       true,
       {m::bank_conflicts, m::shared_wavefronts, m::instructions, m::stall_short_scoreboard},
       {"threads of a warp access shared memory at a stride that is a multiple of 32 words",
        "a tile's rows are a power of two long and are read by column"},
       "pad the rows of the shared array by one element, or swizzle the index",
       weigh::bank_conflicts},
      {"divergence",
       true,
       {m::active_threads},
       {"a branch depends on the thread or on the data",
        "loops of one warp have different lengths"},
       "let whole warps take one branch: sort the work, or use a select in place of the branch",
       weigh::divergence},
      {"atomics",
       true,
       {m::global_atomics, m::global_reductions, m::shared_atomics, m::instructions,
        m::stall_lg_throttle, m::dram_throughput},
       {"many threads update the same few addresses", "each element is an atomic of its own"},
       "reduce within the warp and the block first, then one atomic a block",
       weigh::atomics},
      {"register_spills",
       true,
       {m::spill_bytes, m::registers, m::local_loads, m::local_stores, m::instructions},
       {"more live values than registers", "an array that is indexed by a variable"},
       "keep fewer values alive: smaller tiles, constant indices, no bound on registers",
       weigh::spills},
      {"fp64",
       true,
       {m::fp64_pipe, m::fma_pipe},
       {"a constant without f, such as 1.0, makes the arithmetic double",
        "a function of double precision, such as exp in place of expf"},
       "write constants with f and use the functions of single precision",
       weigh::fp64},
      {"no_tensor_cores",
       true,
       {m::fma_pipe, m::tensor_pipe, m::issue_active, m::shared_wavefronts, m::instructions,
        m::dram_throughput},
       {"a product of matrices in ordinary multiply-adds",
        "types that the tensor cores do not take"},
       "where the tolerance allows it, use mma with TF32, BF16 or FP16",
       weigh::tensor},
      {"no_overlap",
       true,
       {m::stall_barrier, m::stall_long_scoreboard, m::compute_throughput, m::memory_throughput,
        m::instructions, m::grid_blocks, m::block_threads},
       {"one tile is loaded, a barrier passed, then computed on, with nothing in flight",
        "a barrier in each step of a loop"},
       "load the next tile while this one is computed on: two buffers, cp.async",
       weigh::overlap},
  };
}

} // namespace

std::optional<double> declared_metrics::operator[](metric x) const {
  if (std::find(declared_.begin(), declared_.end(), x) == declared_.end()) return std::nullopt;
  return values_[x];
}

std::span<const bottleneck_rule> bottleneck_rules() {
  static const auto rules = make_rules();
  return rules;
}

std::vector<bottleneck_finding> read_cards(const metric_values& x) {
  struct weighed {
    bottleneck_finding finding;
    bool is_first;
  };
  std::vector<weighed> found;
  for (const auto& rule : bottleneck_rules()) {
    bottleneck_finding one{rule.kind, 0, {}, rule.causes, rule.action};
    one.confidence = rule.weigh({x, rule.reads}, one.evidence);
    if (one.confidence <= 0) continue;
    bool first = rule.is_flaw && one.confidence >= sure_flaw;
    found.push_back({std::move(one), first});
  }
  std::stable_sort(found.begin(), found.end(), [](const weighed& a, const weighed& b) {
    if (a.is_first != b.is_first) return a.is_first;
    return a.finding.confidence > b.finding.confidence;
  });
  std::vector<bottleneck_finding> result;
  for (auto& one : found) result.push_back(std::move(one.finding));
  return result;
}

const kernel_metrics* costliest(std::span<const kernel_metrics> kernels) {
  const kernel_metrics* result = kernels.empty() ? nullptr : &kernels[0];
  for (const auto& x : kernels)
    if (x.values[metric::time].value_or(0) > result->values[metric::time].value_or(0)) result = &x;
  return result;
}

} // namespace kernelmill
