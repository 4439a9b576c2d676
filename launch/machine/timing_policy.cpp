#include "launch/machine/timing_policy.hpp"

namespace kernelmill {

Message<wire::TimingPolicy> timing_policy(const timing_section& section, const std::string& clock) {
  return build<wire::TimingPolicy>([&](wire::TimingPolicy::Builder out) {
    out.setEnabled(section.enabled);
    out.setMinBlocks(section.min_blocks);
    out.setMaxBlocks(section.max_blocks);
    out.setHalfWidth(section.half_width);
    out.setClock(clock);
    out.setBudgetMs(section.budget_ms);
    out.setWidest(section.widest);
  });
}

} // namespace kernelmill
