#pragma once

#include <memory>
#include <string>

#include "gpu/toolchain/toolchain.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct sandboxed_compiler_state;

/// One build slot: runs the toolchain on a thread of its own, so that it answers STATUS while the
/// compiler works.
compiler_actor::behavior_type
sandboxed_compiler(compiler_actor::stateful_pointer<sandboxed_compiler_state> self,
                   std::shared_ptr<cpu_toolchain> toolchain, std::string slot);

} // namespace kernelmill
