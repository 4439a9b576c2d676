#include "gpu/profiler/occupancy.hpp"

#include <algorithm>
#include <utility>

namespace kernelmill {

namespace {

constexpr uint32_t warp_threads = 32;
constexpr uint32_t register_unit = 256; // of a warp's share
constexpr uint32_t partitions = 4;      // of a multiprocessor; each holds whole warps
constexpr uint32_t shared_unit = 128;
constexpr uint32_t reserved_shared = 1024; // of each block, since sm_80

uint32_t rounded_up(uint32_t x, uint32_t unit) {
  return (x + unit - 1) / unit * unit;
}

} // namespace

std::optional<multiprocessor_limits> limits_of(std::string_view architecture) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
  static constexpr std::pair<std::string_view, multiprocessor_limits> known[] = {
      {"sm_70", {64, 32, 65536, 96 << 10}},   {"sm_75", {32, 16, 65536, 64 << 10}},
      {"sm_80", {64, 32, 65536, 164 << 10}},  {"sm_86", {48, 16, 65536, 100 << 10}},
      {"sm_87", {48, 16, 65536, 164 << 10}},  {"sm_89", {48, 24, 65536, 100 << 10}},
      {"sm_90", {64, 32, 65536, 228 << 10}},  {"sm_100", {64, 32, 65536, 228 << 10}},
      {"sm_103", {64, 32, 65536, 228 << 10}}, {"sm_120", {48, 24, 65536, 100 << 10}},
      {"sm_121", {48, 24, 65536, 100 << 10}}};
  while (architecture.ends_with('a') || architecture.ends_with('f'))
    architecture.remove_suffix(1); // of features, not of limits
  for (const auto& [name, limits] : known)
    if (name == architecture) return limits;
  return std::nullopt;
}

std::string architecture_in(std::string_view toolchain) {
  auto at = toolchain.find("sm_");
  if (at == toolchain.npos) return {};
  auto end = toolchain.find_first_not_of("0123456789af", at + 3);
  return std::string{toolchain.substr(at, end == toolchain.npos ? end : end - at)};
}

std::string_view to_string(occupancy_limit x) {
  switch (x) {
    case occupancy_limit::warps: return "warps";
    case occupancy_limit::blocks: return "blocks";
    case occupancy_limit::registers: return "registers";
    case occupancy_limit::shared_memory: return "shared memory";
  }
  return "warps";
}

occupancy occupancy_of(const multiprocessor_limits& limits, const block_needs& x) {
  uint32_t warps = (x.threads + warp_threads - 1) / warp_threads;
  occupancy result{limits.warps / warps, 0, occupancy_limit::warps};
  auto at_most = [&](uint32_t blocks, occupancy_limit what) {
    if (blocks < result.blocks) result = {blocks, 0, what};
  };
  at_most(limits.blocks, occupancy_limit::blocks);
  if (x.registers > 0) {
    uint32_t of_warp = rounded_up(x.registers * warp_threads, register_unit);
    uint32_t alive = limits.registers / of_warp / partitions * partitions;
    at_most(alive / warps, occupancy_limit::registers);
  }
  if (x.shared_bytes > 0) {
    uint32_t of_block = rounded_up(x.shared_bytes, shared_unit) + reserved_shared;
    at_most(limits.shared_bytes / of_block, occupancy_limit::shared_memory);
  }
  result.share = std::min(1.0, static_cast<double>(result.blocks * warps) / limits.warps);
  return result;
}

} // namespace kernelmill
