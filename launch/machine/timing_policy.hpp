#pragma once

#include <string>

#include "launch/config/run_config.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// The timing that a referee is asked for; `clock` is "call" or "device".
Message<wire::TimingPolicy> timing_policy(const timing_section& section, const std::string& clock);

} // namespace kernelmill
