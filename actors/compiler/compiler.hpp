#pragma once

#include <memory>
#include <string>

#include "gpu/toolchain/toolchain.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

/// One build slot: runs the toolchain on a thread of its own, so that it answers STATUS while the
/// compiler works.
compiler_actor spawn_sandboxed_compiler(caf::actor_system& system,
                                        std::shared_ptr<native_toolchain> toolchain,
                                        std::string slot);

} // namespace kernelmill
