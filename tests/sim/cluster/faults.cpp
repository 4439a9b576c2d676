#include "tests/sim/cluster/faults.hpp"

#include <cstdio>
#include <random>

namespace kernelmill::sim {

const char* to_string(fault_kind x) noexcept {
  static constexpr const char* names[] = {
      "slow_link",      "cut",          "half_open",      "reset",         "node_killed",
      "node_power_off", "node_drained", "shelf_lost",     "worker_silent", "worker_dies",
      "worker_faulty",  "head_killed",  "killed_writing", "disk_error",    "disk_full",
      "disk_unsure",    "server_down",  "server_faulty",  "server_silent", "server_lying",
      "server_left",    "clock_jump",   "run_paused"};
  static_assert(std::size(names) == fault_kinds);
  return names[static_cast<unsigned>(x)];
}

const char* to_string(defect x) noexcept {
  static constexpr const char* names[] = {
      "none",          "early_acknowledgement", "forgotten_record", "turn_counted_twice",
      "fault_is_paid", "crossed_answers",       "lost_answer",      "unfair_queue"};
  static_assert(std::size(names) == defects);
  return names[static_cast<unsigned>(x)];
}

std::string text_of(size_t number, const fault& x) {
  char text[160];
  std::snprintf(text, sizeof text, "%zu: %s of %u at %.3f s for %.3f s (%u)", number,
                to_string(x.kind), x.where, x.at_ms / 1000.0, x.for_ms / 1000.0, x.amount);
  return text;
}

std::vector<fault> draw_faults(uint64_t seed) {
  std::mt19937_64 random{seed * 0x9e3779b97f4a7c15ULL + 1};
  auto upto = [&](uint32_t most) { return static_cast<uint32_t>(random() % most); };
  // Some seeds have one kind alone, many times; most mix all of them.
  auto only = upto(8) == 0 ? static_cast<int>(upto(fault_kinds)) : -1;
  std::vector<fault> result(upto(13));
  for (auto& x : result) {
    x.kind = static_cast<fault_kind>(only >= 0 ? static_cast<uint32_t>(only) : upto(fault_kinds));
    x.at_ms = upto(upto(2) == 0 ? 20'000 : 120'000);
    x.for_ms = 50 + upto(upto(3) == 0 ? 60'000 : 8'000);
    x.where = upto(6);
    x.amount = upto(x.kind == fault_kind::slow_link ? 3'000 : 90'000);
  }
  return result;
}

} // namespace kernelmill::sim
