#pragma once

#include "launch/config/run_config.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// The timing that a referee is asked for; `clock` is "call" or "device".
inline Message<wire::TimingPolicy> timing_policy(const timing_section& x,
                                                 const std::string& clock) {
  return build<wire::TimingPolicy>([&](wire::TimingPolicy::Builder out) {
    out.setEnabled(x.enabled);
    out.setMinBlocks(x.min_blocks);
    out.setMaxBlocks(x.max_blocks);
    out.setHalfWidth(x.half_width);
    out.setClock(clock);
    out.setBudgetMs(x.budget_ms);
    out.setWidest(x.widest);
  });
}

} // namespace kernelmill
