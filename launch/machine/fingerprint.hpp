#pragma once

// What hardware and software a session of a run stood on, in the words of gpu_rl's
// HardwareFingerprint, and a few more. What is not known is null.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launch/machine/backend.hpp"

namespace kernelmill {

/// `toolchain` is what compilers say of themselves; `python` is asked for torch where tasks need
/// it, else it is empty. Of a head whose nodes judge, GPUs are those that the nodes told of.
nlohmann::ordered_json machine_fingerprint(const chosen_backend& backend,
                                           const std::string& toolchain, const std::string& python);

} // namespace kernelmill
