#include "launch/judging/inspecting/inspected.hpp"

#include "launch/judging/inspecting/parts.hpp"

namespace kernelmill::inspecting {

inspected_code::inspected_code(listed_code x)
    : code(std::move(x)), ptx(read_ptx(code.ptx, code.file)), sass(read_sass(code.sass, code.file)),
      gcn(read_gcn(code.gcn, code.file)), amd(read_gcn_resources(code.gcn)) {
  add_live_registers(code.life_ranges, sass);
}

const std::vector<kernel_listing>& inspected_code::nearest() const {
  if (!gcn.empty()) return gcn;
  return sass.empty() ? ptx : sass;
}

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> all{"build",   "ptx",     "sass", "gcn",   "triview",
                                            "profile", "quality", "ttir", "ttgir", "llir"};
  return all;
}

bool is_stage(const std::string& section) {
  return section == "ttir" || section == "ttgir" || section == "llir";
}

std::optional<occupancy> occupancy_for(const inspected& x, const kernel_resources& k,
                                       uint32_t threads) {
  auto limits = limits_of(x.architecture);
  if (!limits) return std::nullopt;
  return occupancy_of(*limits, {threads, k.registers, k.shared_bytes});
}

} // namespace kernelmill::inspecting
