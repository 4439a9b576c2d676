#pragma once

namespace kernelmill {

/// The source of the referee's kernels, for NVRTC.
extern const char* const device_kernels_text;

} // namespace kernelmill
