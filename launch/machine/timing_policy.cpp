#include "launch/machine/timing_policy.hpp"

namespace kernelmill {

Message<wire::TimingPolicy> timing_policy(const timing_section& section, const std::string& clock) {
  return build<wire::TimingPolicy>([&](wire::TimingPolicy::Builder out) {
    out.setEnabled(section.enabled);
    out.setHalfWidth(section.half_width);
    out.setClock(clock);
    out.setWidest(section.widest);
  });
}

} // namespace kernelmill
